"""The one switch for compilation: how every kernel of this folder is made.

Kernels are compiled on first use and cached beside their source, or in ``NUMBA_CACHE_DIR``. A
kernel calls kernels of its own file only: the cache follows the file of the outer function, so a
callee edited elsewhere would leave a stale caller behind. With ``NUMBA_DISABLE_JIT=1`` the same
source is interpreted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import numpy as np
from numba import config, njit
from numba.core import event

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


def _compiled(function: Function, **options: Any) -> Function:
    if config.DISABLE_JIT:  # type: ignore[attr-defined]  # set from the environment at import
        interpreted: Any = np.errstate(all="ignore")(function)
        interpreted.py_func = function
        return cast(Function, interpreted)
    try:
        return cast(
            Function, njit(cache=True, nogil=True, error_model="numpy", **options)(function)
        )
    except RuntimeError:  # no folder for the cache
        return cast(Function, njit(nogil=True, error_model="numpy", **options)(function))


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
