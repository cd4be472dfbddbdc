"""The chunked scan is the two-term recurrence: values, gradients, what it may not see, and what it refuses."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from kernels.framework.backend import UnavailableKernelError
from kernels.framework.spec import ShapeCase
from kernels.mamba3_scan.chunks_torch import ScanArguments
from kernels.mamba3_scan.op import SPEC, mamba3_scan, mamba3_scan_op
from kernels.mamba3_scan.peers import PEERS
from kernels.measure.parity import leaves, relative_error, run_with_gradients

DOCUMENT_FIELD, VALUES_FIELD = 9, 4


def arguments_of(*sizes: int, dtype: torch.dtype = torch.float64) -> tuple:
    """Sizes are B, T, H, P, N, L. Rows hold documents of one token, and ends on, before and after a chunk's edge."""
    drawn = SPEC.sample_inputs(torch.Generator().manual_seed(0), torch.float32, ShapeCase(sizes, ""))
    return leaves(drawn, dtype)


@pytest.mark.parametrize("chunk_size", [3, 8, 16, 50, 64])
def test_chunks_of_any_size_equal_the_recurrence_values_and_gradients(chunk_size: int) -> None:
    arguments = (*arguments_of(3, 50, 3, 5, 8, 16)[:-1], chunk_size)

    chunked = run_with_gradients(SPEC.op, leaves(arguments))
    recurrent = run_with_gradients(SPEC.reference, leaves(arguments))

    assert chunked.keys() == recurrent.keys()
    for name, expected in recurrent.items():
        torch.testing.assert_close(
            chunked[name], expected, rtol=1e-10, atol=1e-10, msg=lambda text, name=name: name + text
        )


def test_the_recurrence_is_the_published_one_written_with_scalars() -> None:
    arguments = arguments_of(2, 9, 2, 3, 4, 4)
    c, b, c_bias, b_bias, x, steps, rates, shares, velocities, documents = (
        tensor.detach().numpy() for tensor in arguments[:-1]
    )
    actual = SPEC.reference(*arguments).detach().numpy()

    for row, head in np.ndindex(2, 2):
        for t in range(9):
            if t == 0 or documents[row, t] != documents[row, t - 1]:
                angle, state, last_x, last_k = 0.0, np.zeros((3, 4)), np.zeros(3), np.zeros(4)
            step, share = steps[row, t, head], shares[row, t, head]
            angle += step * velocities[row, t, 0]
            turn = np.eye(4)
            turn[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
            q, k = turn @ (c[row, t] + c_bias[head]), turn @ (b[row, t] + b_bias[head])
            decay = np.exp(step * rates[row, t, head])
            state = decay * state + (1 - share) * step * decay * np.outer(last_x, last_k)
            state += share * step * np.outer(x[row, t, head], k)
            last_x, last_k = x[row, t, head], k
            np.testing.assert_allclose(actual[row, t, head], state @ q, rtol=1e-12, atol=1e-12)


def test_phases_of_thousands_of_radians_keep_the_digits_of_one_turn() -> None:
    *tensors, chunk_size = arguments_of(1, 4096, 1, 4, 8, 64, dtype=torch.float32)
    scan = ScanArguments(*(tensor.detach() for tensor in tensors))
    scan = scan._replace(
        step_sizes_BTH=torch.full_like(scan.step_sizes_BTH, 3.0),
        decay_rates_BTH=scan.decay_rates_BTH / 100,
        velocities_BTS=scan.velocities_BTS.abs(),
    )
    exact = mamba3_scan(ScanArguments(*(each.double() for each in scan[:DOCUMENT_FIELD]), scan[-1]), chunk_size)

    assert relative_error(mamba3_scan(scan, chunk_size), exact) < 5e-5


def test_a_token_sees_nothing_of_the_tokens_after_it() -> None:
    arguments = arguments_of(1, 40, 2, 4, 8, 16)
    before = SPEC.op(*arguments)

    changed = [tensor.detach().clone() if isinstance(tensor, torch.Tensor) else tensor for tensor in arguments]
    for tensor in changed[:2] + changed[4:9]:
        tensor[:, 23:] *= 0.5

    assert torch.equal(SPEC.op(*changed)[:, :23], before[:, :23])


@pytest.mark.parametrize("poison", [2.0, float("nan"), float("inf")], ids=str)
def test_not_one_bit_of_a_document_depends_on_another_document(poison: float) -> None:
    """Values and gradients; numbers that are not finite included, in the inputs and in the incoming gradient."""
    arguments = arguments_of(2, 48, 2, 4, 8, 16, dtype=torch.float32)
    documents = arguments[DOCUMENT_FIELD]
    is_other_BT = documents == documents[1, 20]
    is_other_BT[0] = False
    assert is_other_BT.any()
    before = run_with_gradients(SPEC.op, leaves(arguments))

    for field in (0, 1, *range(4, 9)):
        changed = list(leaves(arguments))
        changed[field].data[is_other_BT] *= poison
        after = run_with_gradients(SPEC.op, tuple(changed))
        for name in ("forward", "gradient 0", "gradient 1", *(f"gradient {index}" for index in range(4, 9))):
            assert torch.equal(after[name][~is_other_BT], before[name][~is_other_BT]), (field, name)
    assert not torch.isfinite(after["forward"][is_other_BT]).all() or poison == 2.0


def test_a_number_that_is_not_finite_is_seen_in_the_rest_of_its_document() -> None:
    arguments = list(arguments_of(1, 40, 2, 4, 8, 16, dtype=torch.float32))
    arguments[VALUES_FIELD].data[0, 5, 1, 2] = float("nan")

    result = SPEC.op(*arguments)[0, :, 1, 2]

    assert torch.isfinite(result[:5]).all()
    assert result[5:].isnan().all()


def test_views_give_the_bits_of_their_copies() -> None:
    arguments = arguments_of(2, 20, 2, 4, 8, 16, dtype=torch.float32)
    strided = [
        torch.stack((tensor.detach(), tensor.detach()), dim=-1)[..., 0] if isinstance(tensor, torch.Tensor) else tensor
        for tensor in arguments
    ]

    assert torch.equal(SPEC.op(*strided), SPEC.op(*arguments))


def test_the_public_kernel_is_given_what_it_turns_into_our_velocities_and_shares(monkeypatch) -> None:
    def combined(**given):
        return given

    module = SimpleNamespace(mamba3_siso_combined=combined)
    monkeypatch.setitem(sys.modules, "mamba_ssm.ops.triton.mamba3.mamba3_siso_combined", module)
    arguments = arguments_of(1, 9, 2, 4, 8, 4, dtype=torch.float32)

    given = PEERS["mamba_ssm mamba3_siso_combined, without documents"]()(*arguments)

    velocities_BT1S = torch.pi * torch.tanh(given["Angles"][:, :, :1])
    torch.testing.assert_close(velocities_BT1S[:, :, 0], arguments[8], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(torch.sigmoid(given["Trap"]).mT, arguments[7])


def test_half_precision_and_impossible_sizes_are_refused_by_name() -> None:
    arguments = list(arguments_of(1, 4, 1, 2, 4, 4, dtype=torch.float32))
    scan = ScanArguments(*arguments[:-1])

    with pytest.raises(UnavailableKernelError, match="values_BTHP is float16"):
        mamba3_scan(scan._replace(values_BTHP=scan.values_BTHP.half()), 4)
    with pytest.raises(ValueError, match="3 velocities turn more channels than the 4 of a query"):
        mamba3_scan(scan._replace(velocities_BTS=torch.zeros(1, 4, 3)), 4)
    with pytest.raises(ValueError, match="chunk_size is 0"):
        mamba3_scan(scan, 0)


def test_the_scan_compiles_whole_and_counts_as_one_operation() -> None:
    arguments = arguments_of(1, 12, 1, 4, 8, 8, dtype=torch.float32)
    compiled = torch.compile(lambda *inputs: mamba3_scan_op(*inputs)[0] * 2, fullgraph=True, backend="aot_eager")

    actual = run_with_gradients(compiled, leaves(arguments))
    expected = run_with_gradients(lambda *inputs: SPEC.op(*inputs) * 2, leaves(arguments))

    assert all(torch.equal(actual[name], expected[name]) for name in expected)
