"""Properties that parity with a reference does not show: bits that repeat, strides, NaN that stays where it is, refusals.

Every test holds for both implementations: this process runs the plain-torch one, and `test_parity_interpreted.py` runs this file
again in Triton's interpreter.
"""

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from kernels import rms_norm
from kernels.causal_convolution import causal_convolution
from kernels.chunked_cross_entropy import chunked_cross_entropy
from kernels.engram_lookup import engram_lookup_backward_op
from kernels.expert_combine import expert_combine
from kernels.expert_dispatch import expert_dispatch
from kernels.framework import backend, operands
from kernels.framework.spec import KernelSpec, all_specs
from kernels.gated_rms_norm import gated_rms_norm
from kernels.measure.parity import leaves, run_with_gradients

NAMES = {
    "causal_convolution",
    "chunked_cross_entropy",
    "engram_lookup",
    "expert_combine",
    "expert_dispatch",
    "expert_product",
    "gated_rms_norm",
    "rms_norm",
}
SPECS = [spec for spec in all_specs() if spec.name in NAMES]
NAN, INFINITY = float("nan"), float("inf")
every_spec = pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)


def sample(spec: KernelSpec) -> tuple:
    return spec.sample_inputs(torch.Generator().manual_seed(7), torch.float32, spec.cases[0])


def same(left: dict[str, Tensor], right: dict[str, Tensor]) -> bool:
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


@every_spec
def test_two_runs_are_equal_bit_for_bit_and_strides_change_nothing(spec: KernelSpec) -> None:
    arguments = sample(spec)
    strided = tuple(
        torch.stack((argument, argument), dim=-1)[..., 0] if isinstance(argument, Tensor) else argument
        for argument in arguments
    )

    first = run_with_gradients(spec.op, leaves(arguments))
    again = run_with_gradients(spec.op, leaves(arguments))
    views = {}
    asking = [view.requires_grad_() if torch.is_tensor(view) and view.is_floating_point() else view for view in strided]
    result = spec.op(*asking)
    wanted = [view for view in asking if torch.is_tensor(view) and view.requires_grad]
    ramp = (torch.arange(result.numel()) % 13 - 6).view(result.shape) / 8
    views = dict(zip(list(first)[1:], torch.autograd.grad(result, wanted, ramp), strict=True)) | {"forward": result}

    assert not any(view.is_contiguous() for view in wanted if view.numel() > 1)
    assert same(first, again)
    assert same(first, views)


@every_spec
def test_the_backward_operation_declares_what_it_does(spec: KernelSpec) -> None:
    calls = []

    class Record(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
            if str(function).startswith(f"sluice.{spec.name}_backward"):
                calls.append((function, arguments))
            return function(*arguments, **(keywords or {}))

    with Record():
        run_with_gradients(spec.op, leaves(sample(spec)))
    ((function, arguments),) = calls

    torch.library.opcheck(function, arguments, test_utils=("test_schema", "test_faketensor"))


@every_spec
def test_integers_are_refused_by_name(spec: KernelSpec) -> None:
    arguments = tuple(
        argument.to(torch.int32) if torch.is_tensor(argument) and argument.is_floating_point() else argument
        for argument in sample(spec)
    )

    with pytest.raises(TypeError, match=rf"{spec.name}: found torch.int32, expected one of float32"):
        spec.op(*arguments)


@every_spec
def test_float64_keeps_its_precision_in_both_implementations(spec: KernelSpec) -> None:
    arguments = leaves(sample(spec), torch.float64)

    actual, expected = run_with_gradients(spec.op, arguments), run_with_gradients(spec.reference, leaves(arguments))

    for name in expected:
        torch.testing.assert_close(actual[name], expected[name], rtol=1e-11, atol=1e-11)


def test_nothing_in_gives_nothing_out() -> None:
    none_BTC, weight_C = torch.empty(0, 3, 4, requires_grad=True), torch.ones(4, requires_grad=True)

    outputs = [
        rms_norm.rms_norm(none_BTC, weight_C, 1e-5),
        gated_rms_norm(none_BTC, none_BTC, weight_C, 1e-5),
        causal_convolution(none_BTC, torch.ones(4, 4), torch.zeros(0, 3, dtype=torch.int64)),
    ]
    sum(output.sum() for output in outputs).backward()

    assert [output.shape for output in outputs] == [none_BTC.shape] * 3
    assert weight_C.grad.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("poison", [NAN, INFINITY])
def test_a_poisoned_document_reaches_no_other_through_the_convolution(poison: float) -> None:
    generator = torch.Generator().manual_seed(0)
    positions_BT = torch.tensor([[0, 1, 2, 0, 1, 2, 3, 0, 0, 1]])
    is_second_T = torch.tensor([0, 0, 0, 1, 1, 1, 1, 0, 0, 0], dtype=torch.bool)
    clean_BTC = torch.randn(1, 10, 3, generator=generator)
    taps_CK = torch.randn(3, 4, generator=generator)
    results = []
    for x_BTC in (clean_BTC, torch.where(is_second_T[:, None], poison, clean_BTC)):
        x_BTC = x_BTC.clone().requires_grad_()
        y_BTC = causal_convolution(x_BTC, taps_CK, positions_BT, has_silu=True)
        (grad_BTC,) = torch.autograd.grad(y_BTC, x_BTC, torch.where(is_second_T[:, None], poison, clean_BTC))
        results.append((y_BTC[:, ~is_second_T], grad_BTC[:, ~is_second_T]))

    assert all(torch.equal(left, right) for left, right in zip(*results, strict=True))
    assert all(tensor.isfinite().all() for tensor in results[1])


def test_a_poisoned_row_reaches_no_other_through_the_norms() -> None:
    x_ND = torch.randn(5, 6, generator=torch.Generator().manual_seed(0))
    poisoned_ND = torch.where(torch.arange(5)[:, None] == 2, NAN, x_ND)
    kept, weight_D = [0, 1, 3, 4], torch.ones(6)
    for norm in (
        lambda x: rms_norm.rms_norm(x, weight_D, 1e-5),
        lambda x: gated_rms_norm(x, x, weight_D, 1e-5),
    ):
        pairs = []
        for rows in (x_ND, poisoned_ND):
            leaf = rows.clone().requires_grad_()
            y_ND = norm(leaf)
            pairs.append((y_ND[kept], torch.autograd.grad(y_ND, leaf, rows)[0][kept]))
        assert all(torch.equal(left, right) for left, right in zip(*pairs, strict=True))


def test_an_empty_slot_is_never_read_and_a_poisoned_token_fills_its_own_slots_alone() -> None:
    slots_MK, pairs_S = torch.tensor([[0, 3], [1, 5]]), torch.tensor([0, 2, 4, 1, 4])
    tokens_MD = torch.tensor([[NAN, NAN], [1.0, 2.0]], requires_grad=True)
    results_SD = torch.tensor([[1.0], [2.0], [NAN], [4.0], [NAN]], requires_grad=True)
    weights_MK = torch.tensor([[0.5, 0.25], [2.0, 3.0]], requires_grad=True)

    slots_SD = expert_dispatch(tokens_MD, pairs_S, slots_MK)
    out_MD = expert_combine(results_SD, weights_MK, slots_MK, pairs_S)
    (grad_tokens_MD,) = torch.autograd.grad(slots_SD, tokens_MD, torch.arange(10.0).view(5, 2))
    grad_results_SD, grad_weights_MK = torch.autograd.grad(
        out_MD, (results_SD, weights_MK), torch.tensor([[1.0], [NAN]])
    )

    assert slots_SD[[1, 2, 4]].tolist() == [[1, 2], [0, 0], [0, 0]]
    assert slots_SD[[0, 3]].isnan().all()
    assert grad_tokens_MD.tolist() == [[6, 8], [2, 3]], "the pair without a slot adds nothing"
    assert out_MD.flatten().tolist() == [1.5, 4.0]
    assert grad_results_SD[[0, 2, 3, 4]].flatten().tolist() == [0.5, 0, 0.25, 0]
    assert grad_weights_MK[0].tolist() == [1, 4]
    assert grad_weights_MK[1, 1] == 0, "a pair without a slot has no result to weigh"


def test_a_poisoned_gradient_reaches_its_own_table_row_alone() -> None:
    rows_BTJ = torch.tensor([[[0], [2], [0], [5]] * 20])
    grad_BTJW = torch.ones(1, 80, 1, 2)
    grad_BTJW[0, 1] = NAN

    grad_RW = engram_lookup_backward_op(grad_BTJW, rows_BTJ, 6)

    assert grad_RW[[0, 1, 3, 4, 5]].tolist() == [[40, 40], [0, 0], [0, 0], [0, 0], [20, 20]]
    assert grad_RW[2].isnan().all()


def test_a_poisoned_token_that_is_not_trained_reaches_neither_loss_nor_gradients() -> None:
    generator = torch.Generator().manual_seed(0)
    weight_VD = torch.randn(9, 3, generator=generator, requires_grad=True)
    clean_MD = torch.randn(5, 3, generator=generator)
    is_trained_M = torch.tensor([True, False, True, True, False])
    results = []
    for fill in (0.0, NAN, INFINITY):
        hidden_MD = torch.where(is_trained_M[:, None], clean_MD, fill).requires_grad_()
        loss = chunked_cross_entropy(hidden_MD, weight_VD, torch.tensor([1, -100, 8, 0, 99]), is_trained_M, 2)
        results.append((loss, *torch.autograd.grad(loss, (hidden_MD, weight_VD))))

    assert all(torch.equal(left, right) for other in results[1:] for left, right in zip(results[0], other, strict=True))
    assert results[0][0].isfinite()
    assert results[0][1][~is_trained_M].abs().max() == 0


def test_a_large_logit_of_either_sign_overflows_nothing() -> None:
    hidden_MD = torch.tensor([[1000.0], [-1000.0]], requires_grad=True)
    weight_VD = torch.tensor([[1.0], [0.0], [-1.0]], requires_grad=True)

    loss = chunked_cross_entropy(hidden_MD, weight_VD, torch.tensor([0, 0]), torch.ones(2, dtype=torch.bool), 1)
    loss.backward()

    assert loss == 2000
    assert hidden_MD.grad.tolist() == [[0], [-2]]
    assert weight_VD.grad.flatten().tolist() == [1000, 0, -1000]


def test_shapes_that_do_not_fit_are_refused_with_the_shapes() -> None:
    x_BTC, positions_BT = torch.ones(2, 3, 4), torch.zeros(2, 3, dtype=torch.int64)

    with pytest.raises(ValueError, match=r"taps \(5, 4\).*expected \(B, T, C\), \(C, K\) and \(B, T\)"):
        causal_convolution(x_BTC, torch.ones(5, 4), positions_BT)
    with pytest.raises(ValueError, match=r"gate is \(2, 3\), expected the shape of x, \(2, 3, 4\)"):
        gated_rms_norm(x_BTC, torch.ones(2, 3), torch.ones(4), 1e-5)
    with pytest.raises(ValueError, match=r"hidden \(3, 4\), weight \(7, 5\)"):
        chunked_cross_entropy(x_BTC[0], torch.ones(7, 5), positions_BT[0], positions_BT[0] == 0, 2)


@pytest.mark.parametrize("max_programs", [1, 2, 1000])
def test_the_weight_gradient_is_right_for_any_number_of_programs(monkeypatch, max_programs: int) -> None:
    monkeypatch.setattr(rms_norm, "MAX_BACKWARD_PROGRAMS", max_programs)
    monkeypatch.setattr(rms_norm, "MAX_TILE_ROWS", 2)
    generator = torch.Generator().manual_seed(0)
    x_ND, weight_D = torch.randn(11, 3, generator=generator), torch.ones(3, requires_grad=True)

    rms_norm.rms_norm(x_ND, weight_D, 1e-5).sum().backward()

    expected_D = (x_ND / (x_ND.square().mean(-1, keepdim=True) + 1e-5).sqrt()).sum(0)
    torch.testing.assert_close(weight_D.grad, expected_D)


def test_partial_sums_are_added_in_one_order_whatever_their_number() -> None:
    if not backend.is_interpreting():
        pytest.skip("a kernel: it runs in the interpreter")
    partials_PX = torch.randn(70, 65, generator=torch.Generator().manual_seed(0))

    sums_X = operands.sum_partials(partials_PX)

    torch.testing.assert_close(sums_X, partials_PX.sum(0))
    assert torch.equal(sums_X[:3], operands.sum_partials(partials_PX[:, :3].contiguous()))
