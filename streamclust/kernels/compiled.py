"""The one switch for compilation: how every kernel of this folder is made.

Kernels are compiled on first use and cached beside their source. A kernel calls kernels of its own
file only: the cache follows the file of the outer function, so a callee edited elsewhere would
leave a stale caller behind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile `function` lazily; its Python source stays reachable as ``.py_func``.

    Division by zero follows IEEE 754, as in NumPy, instead of raising.
    """
    return cast(Function, njit(cache=True, nogil=True, error_model="numpy")(function))
