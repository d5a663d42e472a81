"""Where the arrays of a model are: what one event's compiled calls are given instead of them."""

from __future__ import annotations

from itertools import zip_longest

import numpy as np

from streamclust.kernels import stream
from streamclust.results import FloatArray, IntArray


class Desk:
    """Places of the arrays that `kernels.stream.observe_at` and `assign_at` work on.

    Holds the arrays, so that the places are good as long as it lives; when a component replaces
    one of its arrays, all have to be laid out again.

    Parameters
    ----------
    arrays : C-contiguous arrays of float64 or int64, of one or two dimensions
        In the order of the ``AT_`` constants of `kernels.stream`.

    Attributes
    ----------
    address : int
        Of the places, as the kernels want it: always the same.
    """

    def __init__(self, *arrays: FloatArray | IntArray) -> None:
        self.arrays: tuple[FloatArray | IntArray, ...] = ()
        self._places = np.zeros((stream.N_DESK // 3, 3), dtype=np.int64)
        self.address = address_of(self._places)
        self.lay(*arrays)

    def lay(self, *arrays: FloatArray | IntArray) -> None:
        """Lay out these arrays; those that lie there already cost nothing."""
        if len(arrays) != len(self._places):
            raise ValueError(f"{len(arrays)} arrays were laid out, {len(self._places)} are needed")
        for at, (array, there) in enumerate(zip_longest(arrays, self.arrays)):
            if array is not there:
                self._places[at] = _place(array)
        self.arrays = arrays


def address_of(array: FloatArray | IntArray) -> int:
    """Return where an array begins."""
    return int(array.ctypes.data)


def _place(array: FloatArray | IntArray) -> tuple[int, int, int]:
    if not array.flags.c_contiguous or array.dtype not in (np.float64, np.int64):
        raise ValueError(f"an array of {array.dtype} and strides {array.strides} has no place")
    columns = array.shape[1] if array.ndim == 2 else 1
    return address_of(array), len(array), columns
