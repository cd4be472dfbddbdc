"""Compilation of functions to machine code.

The code is compiled once and cached beside the file of the function, or in the user's cache if that folder cannot be
written; if neither can, each process compiles for itself. An entry that cannot be read is made again: one of a folder that
was moved, or one that was cut off. numba keeps entries as pickles, which run code when they are read; whoever can write
them can also write the module beside them, or what else that user runs. Import what uses this late: numba takes half a second.
"""

import importlib
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache


def _load_without_products() -> None:
    """Load numba's functions of arrays without scipy's products of matrices: no loop has any, and they take 0.15 s."""
    name = "scipy.linalg"
    if name not in sys.modules:
        sys.modules[name] = None  # type: ignore[assignment]  # an import of it is an ImportError meanwhile
        try:
            importlib.import_module("numba.np.arraymath")
        finally:
            del sys.modules[name]


_load_without_products()


class MachineCodeCache(FunctionCache):
    """The cache of a function, in which an entry that cannot be read, or not be written, is no error."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the machine code for a signature, or None."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # what reading a pickle raises is whatever its bytes say
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store the machine code for a signature, in place of an index that cannot be read."""
        try:
            super().save_overload(sig, data)
        except OSError:  # a full disk
            self.disable()
        except Exception:
            self.flush()
            super().save_overload(sig, data)


def compiled(function: Callable[..., Any]) -> Any:
    """Return the function as machine code, for each combination of types that it is called with."""
    dispatcher = njit(function)
    with suppress(RuntimeError):  # numba found no folder that it can write
        dispatcher._cache = MachineCodeCache(function)  # as `enable_caching` of numba's Dispatcher does
    return dispatcher
