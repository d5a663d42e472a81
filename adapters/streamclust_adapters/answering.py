"""One record, one model, one answer: the order of things that every door keeps.

An event is answered from what was known before it, then learned, and only then handed out; one that
the model refuses changes nothing and becomes a dead letter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

from streamclust.errors import AdapterError, InvalidPoint, NotReady
from streamclust_adapters.ports import Model, Record, Sink


class Refused(AdapterError):
    """A record that holds no event, while such records are not allowed."""


@dataclass(slots=True)
class Totals:
    """What a run did.

    Attributes
    ----------
    answered, refused : int
        Records that got an answer, and that did not.
    last : int
        Number of the last record.
    first_refusal : str
        Where and why the first record was refused.
    changes : dict
        How many change events there were of each kind.
    """

    answered: int = 0
    refused: int = 0
    last: int = 0
    first_refusal: str = ""
    changes: dict[str, int] = field(default_factory=dict)


class Answerer:
    """A model that is asked and taught record by record; listens to its changes while entered.

    Parameters
    ----------
    model : Model
        The clusterer; nobody else may teach it meanwhile.
    totals : Totals
        Where everything is counted.
    learn, strict, changes : bool
        Whether events are learned, the first refusal raises `Refused`, and change events are
        handed out.
    explain : bool or callable
        Whether answers carry their rule; a callable is asked for each record.
    """

    def __init__(
        self,
        model: Model,
        totals: Totals,
        *,
        learn: bool = True,
        explain: bool | Callable[[Record], bool] = False,
        strict: bool = False,
        changes: bool = False,
    ) -> None:
        self.totals = totals
        self._model = model
        self._learn = learn
        self._explain = explain if callable(explain) else (lambda _: True) if explain else None
        self._strict = strict
        self._hand_on_changes = changes
        self._sink: Sink | None = None
        self._at = 0  # number of the record at hand
        self._unsubscribe: Callable[[], object] | None = None

    def __enter__(self) -> Answerer:
        self._unsubscribe = self._model.on(object, self._changed)  # every kind
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._unsubscribe is not None:
            self._unsubscribe()

    def one(self, record: Record, sink: Sink) -> None:
        """Answer and learn one record, or hand it to the dead letters.

        Raises
        ------
        Refused
            When it holds no event and that is not allowed; it is among the dead letters then, and
            does not count as done.
        """
        self._at, self._sink = record.number, sink
        if record.error is not None:
            self._refuse(record, record.error.reason, sink)
        else:
            try:
                self._answer(record, sink)
            except InvalidPoint as error:
                self._refuse(record, str(error), sink)
        self.totals.last = record.number

    def _answer(self, record: Record, sink: Sink) -> None:
        """Predict, learn, and only then answer: an event that cannot be learned gets none."""
        model, x = self._model, record.x
        assigned = model.assign_one(x)
        rule = self._rule(x) if self._explain and self._explain(record) else None
        if self._learn:
            model.learn_one(x, t=record.t)
        sink.answer(record, assigned.label, assigned.region, rule)
        self.totals.answered += 1

    def _changed(self, change: object) -> None:
        kind = type(change).__name__
        self.totals.changes[kind] = self.totals.changes.get(kind, 0) + 1
        if self._hand_on_changes and self._sink is not None:
            self._sink.change(self._at, change)

    def _rule(self, x: dict[str, float]) -> str | None:
        try:
            return str(self._model.explain_one(x))
        except NotReady:
            return None

    def _refuse(self, record: Record, reason: str, sink: Sink) -> None:
        where = f"event {record.number} ({record.position}): {reason}"
        sink.dead_letter(record, reason)
        if self._strict:
            raise Refused(where)
        self.totals.refused += 1
        self.totals.first_refusal = self.totals.first_refusal or where
