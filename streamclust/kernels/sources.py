"""Which source files a compiled kernel depends on: what its copy in the cache is judged by.

Numba keeps a kernel as long as the file that it is written in stays the same, so a kernel that
calls those of other files would outlive their change. Here every module of this package that a
file imports from, directly or not, is a source of its kernels too.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import Any

from numba import config
from numba.core import caching

SETTINGS: Any = config
IMPORTS = re.compile(rf"^from ({__name__.partition('.')[0]}\.[\w.]+) import ", re.MULTILINE)


@cache
def _source(module: str) -> str:
    spec = find_spec(module)
    get_source = None if spec is None else getattr(spec.loader, "get_source", None)
    return (None if get_source is None else get_source(module)) or ""


@cache
def stamp(module: str) -> bytes:
    """Return a hash of the sources of a module and of all that it imports from this package."""
    told = hashlib.sha256()
    found, left = set(), [module]
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            left += IMPORTS.findall(_source(one))
    for one in sorted(found):
        told.update(hashlib.sha256(_source(one).encode()).digest())
    return told.digest()


class _Stamped:
    def __init__(self, function: Callable[..., Any], path: str) -> None:
        super().__init__(function, path)  # type: ignore[call-arg]  # a locator stands behind
        self._module = function.__module__

    def get_source_stamp(self) -> bytes:
        """What a kept kernel is compared by."""
        return stamp(self._module)


class UserProvided(_Stamped, caching.UserProvidedCacheLocator):
    """Kernels in ``NUMBA_CACHE_DIR``."""


class InTree(_Stamped, caching.InTreeCacheLocator):
    """Kernels beside their source."""


class UserWide(_Stamped, caching.UserWideCacheLocator):
    """Kernels in the user's folder of caches."""


class Zip(_Stamped, caching.ZipCacheLocator):
    """Kernels of a package that is imported from an archive."""


LOCATORS = ",".join(f"{__name__}.{one.__name__}" for one in (UserProvided, InTree, UserWide, Zip))


@contextmanager
def judged_by_sources() -> Iterator[None]:
    """Within this block numba gives kernels these places in its cache."""
    before = SETTINGS.CACHE_LOCATOR_CLASSES
    SETTINGS.CACHE_LOCATOR_CLASSES = before or LOCATORS
    try:
        yield
    finally:
        SETTINGS.CACHE_LOCATOR_CLASSES = before
