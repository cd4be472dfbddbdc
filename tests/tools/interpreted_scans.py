"""Run by `test_parity_interpreted_scans.py` in a process of its own: Triton chooses its interpreter when a kernel is decorated.

Prints one JSON object: for each scan, whether the kernels' bits of one document stay when another document changes, is
not finite, or when the tokens after it change; whether two runs give the same bits; and whether views do. Of Mamba-3 also
whether phases of a thousand radians keep the digits of one turn, and whether all gradients hold where spans and groups of heads
end. Spans are of two chunks here, so that short rows have several.
"""

import json
import os

os.environ["TRITON_INTERPRET"] = "1"

import torch

from kernels.framework.backend import is_interpreting
from kernels.framework.spec import Argument, KernelSpec, ShapeCase
from kernels.m2rnn import op as m2rnn
from kernels.mamba3_scan import launch
from kernels.mamba3_scan import op as mamba3_scan
from kernels.measure.parity import leaves, measure_parity, relative_error, run_with_gradients

# For each scan: sizes with chunks of 16, and which arguments have a row for each token.
SCANS = {"mamba3_scan": ((2, 34, 1, 16, 16, 16), (0, 1, 4, 5, 6, 7, 8)), "m2rnn": ((2, 26, 1, 16, 16), (0, 1, 2, 3))}


def facts(spec: KernelSpec) -> dict[str, bool]:
    """The claims about one scan, each as whether it holds."""
    sizes, fields = SCANS[spec.name]
    arguments = spec.sample_inputs(torch.Generator().manual_seed(1), torch.float32, ShapeCase(sizes, ""))
    documents = next(each for each in arguments if isinstance(each, torch.Tensor) and not each.is_floating_point())
    is_other = documents == documents[1, 19]
    is_other[0] = False
    is_later = torch.zeros_like(is_other)
    is_later[:, 21:] = True
    names = ["forward", *(f"gradient {field}" for field in fields)]
    base = run_with_gradients(spec.op, leaves(arguments))

    def same(touched: torch.Tensor, factor: float) -> bool:
        after = run_with_gradients(spec.op, _changed(arguments, fields, touched, factor))
        return all(torch.equal(after[name][~touched], base[name][~touched]) for name in names)

    again = run_with_gradients(spec.op, leaves(arguments))
    views = tuple(_view(argument) for argument in arguments)
    later = spec.op(*_changed(arguments, fields, is_later, 0.5)).detach()
    return {
        "isolation": same(is_other, 0.5),
        "nan stays": same(is_other, float("nan")),
        "causality": torch.equal(later[~is_later], base["forward"][~is_later]),
        "reruns": all(torch.equal(again[name], base[name]) for name in base),
        "views": torch.equal(spec.op(*views), base["forward"]),
    }


def keeps_digits_of_phases() -> bool:
    """Return whether steps of 3 along 256 tokens are as near to float64 as short phases are."""
    *tensors, chunk_size = mamba3_scan.SPEC.sample_inputs(
        torch.Generator().manual_seed(1), torch.float32, ShapeCase((1, 256, 1, 16, 16, 16), "")
    )
    tensors[5], tensors[6], tensors[8] = torch.full_like(tensors[5], 3.0), tensors[6] / 100, tensors[8].abs()
    exact = mamba3_scan.SPEC.op(*leaves(tuple(tensors), torch.float64), chunk_size).detach()
    return relative_error(mamba3_scan.SPEC.op(*tensors, chunk_size), exact) < 1e-5


def agrees_between_spans_and_groups() -> bool:
    """Return whether results and gradients of five chunks and three heads, two at a time, are those of the recurrence."""
    case = ShapeCase((1, 70, 3, 8, 8, 16), "")
    found = measure_parity(mamba3_scan.SPEC, torch.float32, case, "cpu", seed=1)
    return all(each.error_eps <= each.tolerance_eps for each in found)


def agrees_where_shares_of_velocities_cancel() -> bool:
    """Return whether all results hold, in both precisions, where what queries and keys add to velocities cancels by four digits."""
    case = ShapeCase((2, 5, 3, 16, 8, 16), "")
    found = [measure_parity(mamba3_scan.SPEC, dtype, case, "cpu", seed=0) for dtype in mamba3_scan.SPEC.dtypes]
    return all(each.error_eps <= each.tolerance_eps for results in found for each in results)


def _changed(
    arguments: tuple[Argument, ...], fields: tuple[int, ...], touched: torch.Tensor, factor: float
) -> tuple[Argument, ...]:
    changed = leaves(arguments)
    for field in fields:
        changed[field].data[touched] *= factor
    return changed


def _view(argument: Argument) -> Argument:
    return torch.stack((argument, argument), dim=-1)[..., 0] if isinstance(argument, torch.Tensor) else argument


if __name__ == "__main__":
    assert is_interpreting()
    launch.SPAN, launch.GROUP = 2, 2
    found = {spec.name: facts(spec) for spec in (mamba3_scan.SPEC, m2rnn.SPEC)}
    found["mamba3_scan"]["phases"] = keeps_digits_of_phases()
    found["mamba3_scan"]["spans"] = agrees_between_spans_and_groups()
    found["mamba3_scan"]["velocities"] = agrees_where_shares_of_velocities_cancel()
    print(json.dumps(found))
