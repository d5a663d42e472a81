"""What a worker tells while it runs: one line per happening, for people or for machines."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal, TextIO

import msgspec


class Log:
    """Lines on a stream.

    Parameters
    ----------
    stream : TextIO
        Where they go.
    form : {"text", "json"}
        ``time level message name=value ...``, or one JSON object per line.
    hide : callable
        Takes secrets out of a line.
    clock : callable
        Seconds since 1970.
    """

    def __init__(
        self,
        stream: TextIO,
        form: Literal["text", "json"] = "text",
        *,
        hide: Callable[[str], str] = str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._stream = stream
        self._form = form
        self._hide = hide
        self._clock = clock

    def info(self, message: str, **fields: object) -> None:
        """Something that is as it should be."""
        self._write("info", message, fields)

    def warning(self, message: str, **fields: object) -> None:
        """Something that somebody may want to look at."""
        self._write("warning", message, fields)

    def error(self, message: str, **fields: object) -> None:
        """Why the worker ends."""
        self._write("error", message, fields)

    def _write(self, level: str, message: str, fields: dict[str, object]) -> None:
        moment = datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="milliseconds")
        if self._form == "json":
            told = {"time": moment, "level": level, "message": message, **fields}
            line = msgspec.json.encode(told, enc_hook=str).decode()
        else:
            more = "".join(f" {name}={value}" for name, value in fields.items())
            line = f"{moment} {level} {message}{more}"
        self._stream.write(self._hide(line) + "\n")
        self._stream.flush()


class ClientLog(logging.Handler):
    """Hands what the client library logs to a `Log`, as warnings.

    Options are given to the consumer and the producer alike, and each says which it ignores; that
    is left out.
    """

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Tell one line."""
        if "CONFWARN" not in record.getMessage():
            self._log.warning("client", said=record.getMessage())
