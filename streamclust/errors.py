"""Every failure of streamclust, at one glance.

::

    StreamClustError
    ├── InvalidParameter (ValueError)      at construction: name, value, accepted range
    ├── InvalidPoint (ValueError)          a refused event: feature, value, what is accepted
    ├── NotReady (RuntimeError)            a question that has no answer before any cluster exists
    ├── UnknownCluster (KeyError)          no living cluster has this id
    ├── SnapshotError (ValueError)         a torn, foreign or hostile snapshot
    │   └── UnknownFormat                  a snapshot of a format that this version cannot read
    ├── StaleSummary (ValueError)          a summary made with another state of the model
    ├── InvariantBroken (AssertionError)   only from ``_check()``
    └── AdapterError                       the doors
        ├── DecodeError                    a line or message that holds no event, with its position
        └── MissingExtra (ImportError)     a door whose client library is not installed

A refused event leaves the model as it was.
"""


class StreamClustError(Exception):
    """The root of the family."""


class InvalidParameter(StreamClustError, ValueError):
    """A parameter outside its accepted range."""


class InvalidPoint(StreamClustError, ValueError):
    """An event that cannot be clustered; nothing was changed by it."""


class NotReady(StreamClustError, RuntimeError):
    """The model has no cluster yet."""


class UnknownCluster(StreamClustError, KeyError):
    """No living cluster has this id."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class SnapshotError(StreamClustError, ValueError):
    """A snapshot that cannot be trusted or read."""


class UnknownFormat(SnapshotError):
    """A snapshot written in a format that this version does not know."""


class StaleSummary(StreamClustError, ValueError):
    """A summary made with another state of the model than the one it was brought to."""


class InvariantBroken(StreamClustError, AssertionError):
    """A structure broke one of its own invariants: a defect of streamclust."""


class AdapterError(StreamClustError):
    """A failure at one of the doors."""


class DecodeError(AdapterError):
    """A record that holds no event.

    Parameters
    ----------
    reason : str
        What came and what is accepted.
    position : str
        Where it stood, for example ``"line 7"``.
    """

    def __init__(self, reason: str, position: str) -> None:
        super().__init__(f"{position}: {reason}")
        self.reason = reason
        self.position = position


class MissingExtra(AdapterError, ImportError):
    """A door that needs an optional dependency.

    Parameters
    ----------
    extra : str
        The name of the extra, as in ``pip install streamclust[extra]``.
    """

    def __init__(self, extra: str) -> None:
        super().__init__(f"this door needs an extra: pip install 'streamclust[{extra}]'")
        self.extra = extra
