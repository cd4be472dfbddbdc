"""Run by `test_compile_ahead.py` in a process of its own, without Triton's interpreter: compiles every kernel for sm_90.

Kernels are not listed: each operation is run on CPU tensors with its launches caught, so what is compiled is what would be
launched, with its constants, argument types, warps and stages. Prints a JSON object: launched kernel -> error, or null.
"""

import json
import sys
from typing import Any

import torch
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile
from triton.runtime.jit import JITFunction

from kernels import backend
from kernels.parity import leaves, run_with_gradients
from kernels.spec import all_specs

TARGET = GPUTarget("cuda", 90, 32)
POINTERS = {
    torch.float32: "*fp32",
    torch.bfloat16: "*bf16",
    torch.int64: "*i64",
    torch.int32: "*i32",
    torch.uint8: "*u8",
    torch.bool: "*i1",
}
found: dict[str, str | None] = {}


def compile_launch(self: JITFunction, *arguments: Any, grid: Any, warmup: bool, **named: Any) -> None:
    """Stands for a launch."""
    values = dict(zip(self.arg_names, arguments, strict=False)) | named
    options = {name: values.pop(name) for name in ("num_warps", "num_stages") if name in values}
    constants = {name: values[name] for name in self.arg_names if self.params[self.arg_names.index(name)].is_constexpr}
    signature = {name: "constexpr" if name in constants else type_of(values[name]) for name in self.arg_names}
    pointers = [(place,) for place, name in enumerate(self.arg_names) if isinstance(values[name], Tensor)]
    attributes = {place: [["tt.divisibility", 16]] for place in pointers}
    label = f"{self.__module__}.{self.__name__}"
    try:
        compile(ASTSource(self, signature, constants, attributes), target=TARGET, options=options)
        found.setdefault(label, None)
    except Exception as error:  # said of each kernel, so that one does not hide the next
        found[label] = f"{type(error).__name__}: {str(error)[-500:]}"


def type_of(value: Any) -> str:
    """An argument's type as a signature says it."""
    if isinstance(value, Tensor):
        return POINTERS[value.dtype]
    return "fp32" if isinstance(value, float) else "i32"


def main() -> None:
    """Run each operation on its first case."""
    names = sys.argv[1:]
    JITFunction.run = compile_launch
    backend.is_interpreting = lambda: True  # only says that launches happen on CPU tensors
    for spec in all_specs():
        if not names or spec.name in names:
            arguments = spec.sample_inputs(torch.Generator().manual_seed(1), torch.bfloat16, spec.cases[0])
            run_with_gradients(spec.op, leaves(arguments))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
