"""Who has a worker's name: the process that took it last, as a file of the shared folder says.

A broker alone cannot tell. It may fence a worker on account of that worker itself, where an answer
to its request to join was lost in an outage (KAFKA-20983) or a transaction took too long.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

from streamclust.errors import AdapterError


class Claim:
    """The claim of this process on a name.

    Parameters
    ----------
    folder : Path
        The folder that all workers of a group share; it must be there.
    name : str
        The name; any text.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / f".claim-{quote(name, safe='')}"
        self._token = uuid4().hex

    def take(self) -> None:
        """Take the name from whoever has it.

        Raises
        ------
        AdapterError
            When the folder cannot be written.
        """
        fresh = self._path.with_name(f"{self._path.name}.{self._token}")
        try:
            fresh.write_text(self._token)
            os.replace(fresh, self._path)
        except OSError as error:
            raise AdapterError(f"cannot write {self._path}: {error.strerror}") from error

    def held(self) -> bool:
        """Whether nobody has taken the name since; what cannot be read says nothing."""
        try:
            return self._path.read_text() == self._token
        except OSError:
            return True
