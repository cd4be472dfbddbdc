"""One declaration registers an operation with its fake and its gradients, for compiled code too."""

import torch
from torch import Tensor

from kernels.framework.operation import empty_like, operation, register_gradients


@operation(lambda x, factors, power: empty_like(x, x))
def scaled_power_op(x: Tensor, factors: Tensor, power: int) -> tuple[Tensor, Tensor]:
    """Return factors * x^power, and its slope."""
    return factors * x**power, factors * power * x ** (power - 1)


@operation(lambda grad, slopes, power: grad.new_empty(grad.shape))
def scaled_power_backward_op(grad: Tensor, slopes: Tensor, power: int) -> Tensor:
    """Return the gradient of x; a number among the saved values arrives as it was saved."""
    assert power == 3
    return grad * slopes


register_gradients(scaled_power_op, scaled_power_backward_op, lambda inputs, output: (output[1], inputs[2]))


def inputs() -> tuple[Tensor, Tensor, int]:
    return torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 5.0]), 3


def test_schema_fake_and_gradients_are_consistent() -> None:
    torch.library.opcheck(torch.ops.sluice.scaled_power.default, inputs())


def test_the_first_inputs_have_gradients_and_other_outputs_have_none() -> None:
    x, factors, power = inputs()
    result, slope = scaled_power_op(x, factors.requires_grad_(), power)
    result.sum().backward()

    assert x.grad is not None
    assert x.grad.tolist() == [9.0, 60.0]
    assert factors.grad is None
    assert not slope.requires_grad


def test_compiled_code_has_the_same_gradients() -> None:
    x, factors, power = inputs()
    compiled = torch.compile(lambda *values: scaled_power_op(*values)[0] * 2, fullgraph=True, backend="aot_eager")
    compiled(x, factors, power).sum().backward()

    assert x.grad is not None
    assert x.grad.tolist() == [18.0, 120.0]
