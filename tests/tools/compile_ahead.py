"""Compilation of every Triton kernel for sm_90, on a machine without a GPU: errors, registers, spills, memory.

Kernels are not listed: each operation is run on CPU tensors with its launches caught, so what is compiled is what would be
launched on that architecture, with its constants, argument types, warps and stages. Run by `test_compile_ahead.py` in a process
of its own, without Triton's interpreter.

python -m tests.tools.compile_ahead [KERNEL ...] [--dtype D] [--real] [--table]      a row a launch; --real at sizes of training
python -m tests.tools.compile_ahead --write docs/kernels.md                        the tables of that page, at sizes of training
"""

import argparse
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import triton
from torch import Tensor
from torch.library import Library
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import CUDABackend, get_ptxas
from triton.compiler import ASTSource, compile
from triton.runtime.jit import JITFunction

from kernels.framework import configurations
from kernels.framework.backend import caught_launches, dtype_name
from kernels.framework.spec import KernelSpec, ShapeCase, all_specs
from kernels.measure import parity
from kernels.measure.parity import leaves, run_with_gradients
from tests.tools import kernel_page

COMPILER = f"Triton {triton.__version__}"
TARGET = GPUTarget("cuda", 90, 32)
POINTERS = {
    torch.float32: "*fp32",
    torch.bfloat16: "*bf16",
    torch.float16: "*fp16",
    torch.int64: "*i64",
    torch.int32: "*i32",
    torch.uint8: "*u8",
    torch.bool: "*i1",
}
OFFSETS_ALONE = {"T", "H"}
"""Constants by which code differs in offsets alone: the numbers of tokens and heads."""
COLUMNS = ("kernel", "dtype", "case", "num_warps", "num_stages", "registers", "spilled_bytes", "shared_bytes")
Row = dict[str, Any]
launches: dict[str, tuple[JITFunction, ASTSource, dict[str, int]]] = {}
moved: list[int] = []
"""Bytes of the tensors of each launch."""


def catch_launch(self: JITFunction, *arguments: Any, **named: Any) -> None:
    """Record, in place of a launch, what is moved and what would be compiled, once for all constants that shape the same code."""
    moved.append(sum(each.nbytes for each in arguments if isinstance(each, Tensor)))
    values = dict(zip(self.arg_names, arguments, strict=False)) | named
    options = {name: values.pop(name) for name in ("num_warps", "num_stages") if name in values}
    constants = {name: values[name] for name in self.arg_names if self.params[self.arg_names.index(name)].is_constexpr}
    signature = {name: "constexpr" if name in constants else type_of(values[name]) for name in self.arg_names}
    pointers = [(place,) for place, name in enumerate(self.arg_names) if isinstance(values[name], Tensor)]
    attributes = {place: [["tt.divisibility", 16]] for place in pointers}
    source = ASTSource(self, signature, constants, attributes)
    shaping = {name: value for name, value in constants.items() if name not in OFFSETS_ALONE}
    launches.setdefault(f"{self.__module__}.{self.__name__} {signature} {shaping} {options}", (self, source, options))


def type_of(value: Any) -> str:
    """Return an argument's type as a signature names it."""
    if isinstance(value, Tensor):
        return POINTERS[value.dtype]
    return "fp32" if isinstance(value, float) else "i32"


def leave_out_numbers() -> Library:
    """Replace drawn numbers and matrix products on a CPU by zeros, also within operations, for as long as what is returned lives.

    Between launches that are only caught numbers mean nothing, and in bfloat16 a processor without such instructions takes an
    hour for the products.
    """
    numbers = Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    by_operation: dict[str, Callable[..., Tensor]] = {
        "mm": lambda left, right: left.new_zeros(left.shape[0], right.shape[1]),
        "mm.out": lambda left, right, *, out: out,
        "addmm_": lambda total, left, right, *, beta=1, alpha=1: total,
        "randn.generator": lambda sizes, *, generator, **form: torch.zeros(sizes, **form),
    }
    for name, replacement in by_operation.items():
        numbers.impl(name, replacement, "CPU")  # type: ignore[no-untyped-call]
    parity._incoming_gradient = torch.zeros_like  # type: ignore[assignment]
    return numbers


def rows_of(names: list[str], dtypes: list[str], is_real: bool) -> Iterator[Row]:
    """One row for each launch that no sample before has made, and one for each sample, of what all its launches move."""
    for spec in all_specs():
        if names and spec.name not in names:
            continue
        for dtype in spec.dtypes:
            if dtypes and dtype_name(dtype) not in dtypes:
                continue
            for case in spec.real_cases if is_real else spec.cases:
                known = set(launches)
                sample = sample_row(spec, dtype, case)
                for launch in [launches[key] for key in launches if key not in known]:
                    yield {"dtype": sample["dtype"], "case": case.label} | compiled(*launch)
                yield sample


def sample_row(spec: KernelSpec, dtype: torch.dtype, case: ShapeCase) -> Row:
    """Run an operation on one sample, forward and backward, with its launches caught, and return the bytes of both.

    At the least, each pass reads every input once, writes what it returns, and the second reads the gradient of the first's.
    """
    moved.clear()
    arguments = spec.sample_inputs(torch.Generator().manual_seed(1), dtype, case)
    found = run_with_gradients(spec.op, leaves(arguments))
    inputs = sum(each.nbytes for each in arguments if isinstance(each, Tensor))
    outputs = sum(each.nbytes for name, each in found.items() if name.startswith("forward"))
    gradients = sum(each.nbytes for name, each in found.items() if name.startswith("gradient"))
    num_passes = 2 if spec.is_differentiable else 1
    least = num_passes * (inputs + outputs) + gradients
    return {"operation": spec.name, "dtype": dtype_name(dtype), "case": case.label, "least": least, "moved": sum(moved)}


def compiled(kernel: JITFunction, source: ASTSource, options: dict[str, int]) -> Row:
    """Return the result of one launch. Errors are reported for each kernel, so that one does not hide the next."""
    row: Row = {"kernel": f"{kernel.__module__}.{kernel.__name__}", **options}
    try:
        found = compile(source, target=TARGET, options=options)
        row |= {"num_warps": found.metadata.num_warps, "num_stages": found.metadata.num_stages}
        ptx = found.asm["ptx"]
        products = len(re.findall(r"\b(?:wgmma\.mma_async|mma\.sync)", ptx))
        return row | {"shared_bytes": found.metadata.shared, "tensor_core_products": products, **assembled(ptx)}
    except Exception as error:
        return row | {"failed": f"{type(error).__name__}: {str(error)[-500:]}"}


def assembled(ptx: str) -> dict[str, int]:
    """Registers of a thread and bytes that it spills, as the assembler counts them."""
    line = [get_ptxas(TARGET.arch).path, "-v", "--gpu-name=sm_90a", "-o", "/dev/null", "/dev/stdin"]
    report = subprocess.run(line, input=ptx, capture_output=True, text=True, check=True).stderr
    spilled = sum(int(number) for number in re.findall(r"(\d+) bytes spill", report))
    return {"registers": int(re.findall(r"Used (\d+) registers", report)[-1]), "spilled_bytes": spilled}


def main() -> None:
    """Print the rows as they are found."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.compile_ahead")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--dtype", action="append", default=[])
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    CUDABackend.make_cubin = lambda *_: b""  # assembled once, by `assembled`, which reads what the assembler counts
    configurations.architecture_of = lambda device: TARGET.arch  # type: ignore[assignment]
    _numbers = leave_out_numbers()
    if options.table:
        print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
    with caught_launches(catch_launch):
        if options.write:
            rows = list(rows_of([], ["bfloat16"], is_real=True))
            options.write.write_text(kernel_page.with_tables(options.write.read_text(), rows, COMPILER))
            return
        for row in rows_of(options.names, options.dtype, options.real):
            if options.table and "kernel" not in row:
                continue
            cells = [str(row.get(name, row.get("failed", ""))) for name in COLUMNS]
            print("| " + " | ".join(cells) + " |" if options.table else json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
