"""Compilation of functions to machine code.

The code is compiled once and cached beside the file of the function, or in the user's cache if that folder cannot be
written; if neither can, each process compiles for itself. Import what uses this late: numba takes half a second.
"""

from collections.abc import Callable
from typing import Any

from numba import njit


def compiled(function: Callable[..., Any]) -> Any:
    """Return the function as machine code, for each combination of types that it is called with."""
    try:
        return njit(cache=True)(function)
    except RuntimeError:  # numba found no folder that it can write
        return njit(function)
