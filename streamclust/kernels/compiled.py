"""The one switch for compilation: how every kernel of this folder is made.

Kernels are compiled on first use and cached beside their source, or in ``NUMBA_CACHE_DIR``, until
that source or another that it imports from changes. With ``NUMBA_DISABLE_JIT=1`` the same source is
interpreted.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import numpy as np
from numba import carray, config, njit, types  # type: ignore[attr-defined]
from numba.core import event
from numba.extending import intrinsic

from streamclust.kernels.sources import judged_by_sources
from streamclust.results import FloatArray, IntArray

INTERPRETED: bool = config.DISABLE_JIT  # type: ignore[attr-defined]  # set by the environment
Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile `function` lazily; its Python source stays reachable as ``.py_func``.

    Division by zero follows IEEE 754, as in NumPy, instead of raising. Where no folder can be
    written, it is compiled anew in every process.
    """
    return _compiled(function)


def regrouping_kernel(function: Function) -> Function:
    """A `kernel` that may add up the terms of a sum in any order, so as to fill vector registers.

    Its last bits depend on the processor: use it where rounding decides nothing.
    """
    return _compiled(function, fastmath={"reassoc", "nsz"})


def inlined_kernel(function: Function) -> Function:
    """A `kernel` that becomes part of every kernel that calls it, instead of being called.

    Handing over an array takes seven to nine words and a count of its users: for what is done to
    every row that is a fifth of the whole (measured). No count is kept of an array at an address,
    as long as every kernel between that address and its use is inlined.
    """
    return _compiled(function, forceinline=True)


def body_kernel(function: Function) -> Function:
    """An `inlined_kernel` that one kernel is made around: compiled there alone, not also by itself.

    For a long one that saves a sixth of the time to compile both; many short ones cost more so.
    """
    return _compiled(function, inline="always")


def entry_kernel(function: Function) -> Function:
    """A `kernel` that holds the interpreter's lock: for calls shorter than letting go of it.

    Nobody else runs meanwhile, so it may reach arrays by address that others could replace.
    """
    return _compiled(function, nogil=False)


if INTERPRETED:

    def floats_at(address: int, n: int, d: int) -> FloatArray:
        """Return the float64 array of shape (n, d) at an address."""
        return np.ctypeslib.as_array(
            (ctypes.c_double * int(n * d)).from_address(int(address))
        ).reshape(n, d)

    def ints_at(address: int, n: int) -> IntArray:
        """Return the int64 array of shape (n,) at an address."""
        return np.ctypeslib.as_array((ctypes.c_int64 * int(n)).from_address(int(address)))

else:

    def _pointer(kind: Any) -> Any:
        @intrinsic
        def pointer(context: Any, address: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
                return builder.inttoptr(values[0], context.get_value_type(signature.return_type))

            return types.CPointer(kind)(types.int64), generate  # type: ignore[no-untyped-call]

        return pointer

    _floats, _ints = _pointer(types.float64), _pointer(types.int64)

    @njit(inline="always")
    def floats_at(address: int, n: int, d: int) -> FloatArray:
        """Return the float64 array of shape (n, d) at an address."""
        return carray(_floats(address), (n, d))

    @njit(inline="always")
    def ints_at(address: int, n: int) -> IntArray:
        """Return the int64 array of shape (n,) at an address."""
        return carray(_ints(address), (n,))


def _compiled(function: Function, **options: Any) -> Function:
    options = {"nogil": True, "error_model": "numpy", **options}
    if INTERPRETED:
        interpreted: Any = np.errstate(all="ignore")(function)
        interpreted.py_func = function
        return cast(Function, interpreted)
    try:
        with judged_by_sources():
            return cast(Function, njit(cache=True, **options)(function))
    except RuntimeError:  # no folder for the cache
        return cast(Function, njit(**options)(function))


def cache_folder(function: Callable[..., Any]) -> str | None:
    """Return where a kernel is kept between processes, or None."""
    stats = getattr(function, "stats", None)
    return None if stats is None else stats.cache_path


@contextmanager
def compiling(tell: Callable[[], object]) -> Iterator[None]:
    """Call `tell` once if a kernel is compiled, rather than loaded, within the block."""
    with event.install_listener("numba:compile", _Once(tell)):
        yield


class _Once(event.Listener):
    def __init__(self, tell: Callable[[], object]) -> None:
        self._tell: Callable[[], object] | None = tell

    def on_start(self, event: Any) -> None:
        tell, self._tell = self._tell, None
        if tell is not None:
            tell()

    def on_end(self, event: Any) -> None:
        """Nothing is told of an end."""
