"""The M2RNN scan is a loop over scalars: values, gradients, and what one document may not do to another."""

import math

import pytest
import torch

from kernels.framework.backend import UnavailableKernelError
from kernels.framework.spec import ShapeCase
from kernels.m2rnn.op import SPEC, m2rnn
from kernels.m2rnn.scan_torch import RecurrenceArguments
from kernels.measure.parity import leaves, run_with_gradients


def arguments_of(*sizes: int, dtype: torch.dtype = torch.float64) -> tuple:
    """Sizes are B, T, H, K, V."""
    return leaves(SPEC.sample_inputs(torch.Generator().manual_seed(0), torch.float32, ShapeCase(sizes, "")), dtype)


def scalar_scan(queries, keys, values, forget, transition, documents) -> list[list[list[float]]]:
    """One row, one number at a time."""
    num_heads, num_keys, num_values = len(keys[0]), len(keys[0][0]), len(values[0][0])
    results = []
    for t in range(len(keys)):
        results.append([[0.0] * num_values for _ in range(num_heads)])
        if t == 0 or documents[t] != documents[t - 1]:
            state = [[[0.0] * num_values for _ in range(num_keys)] for _ in range(num_heads)]
        for h in range(num_heads):
            before = [list(row) for row in state[h]]
            for i in range(num_keys):
                for j in range(num_values):
                    mixed = sum(before[i][m] * transition[h][m][j] for m in range(num_values))
                    candidate = math.tanh(mixed + keys[t][h][i] * values[t][h][j])
                    state[h][i][j] = forget[t][h] * before[i][j] + (1 - forget[t][h]) * candidate
            for j in range(num_values):
                results[t][h][j] = sum(queries[t][h][i] * state[h][i][j] for i in range(num_keys))
    return results


@pytest.mark.parametrize("scan", [SPEC.op, SPEC.reference], ids=["operation", "reference"])
def test_the_scan_equals_a_loop_over_scalars_with_resets(scan) -> None:
    *rows, transition, documents = arguments_of(2, 20, 2, 3, 2)

    actual = scan(*rows, transition, documents)

    for row in range(2):
        fields = [tensor[row].tolist() for tensor in rows]
        expected = scalar_scan(*fields, transition.tolist(), documents[row].tolist())
        torch.testing.assert_close(actual[row], torch.tensor(expected, dtype=torch.float64), rtol=1e-12, atol=1e-12)


def test_the_explicit_backward_equals_autograd_through_the_definition() -> None:
    arguments = arguments_of(3, 24, 2, 3, 4)

    explicit = run_with_gradients(SPEC.op, leaves(arguments))
    derived = run_with_gradients(SPEC.reference, leaves(arguments))

    assert explicit.keys() == derived.keys()
    for name, expected in derived.items():
        torch.testing.assert_close(explicit[name], expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("poison", [2.0, float("nan"), float("inf")], ids=str)
def test_not_one_bit_of_a_document_depends_on_another_document(poison: float) -> None:
    arguments = arguments_of(2, 24, 2, 3, 4, dtype=torch.float32)
    is_other_BT = arguments[-1] == 2
    assert is_other_BT.any()
    before = run_with_gradients(SPEC.op, leaves(arguments))

    for field in range(4):
        changed = list(leaves(arguments))
        changed[field].data[is_other_BT] *= poison
        after = run_with_gradients(SPEC.op, tuple(changed))
        for name in ("forward", *(f"gradient {index}" for index in range(4))):
            assert torch.equal(after[name][~is_other_BT], before[name][~is_other_BT]), (field, name)


def test_half_precision_is_refused_by_name() -> None:
    arguments = RecurrenceArguments(*arguments_of(1, 4, 1, 2, 2, dtype=torch.float32))

    with pytest.raises(UnavailableKernelError, match="keys_BTHK is float16"):
        m2rnn(arguments._replace(keys_BTHK=arguments.keys_BTHK.half()))
