"""The border between the user's events and float64 rows."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamclust.desk import address_of
from streamclust.errors import InvalidPoint
from streamclust.features import FeatureSpace, check_value, table_of


def quick(space, x, time, weight):
    """The shared row, where an event could be read the quick way."""
    address = space.read(x, time, weight)
    assert address in (0, address_of(space.row))
    return space.row if address else None


def space(missing: str = "median", most: int = 100, known: dict[object, object] | None = None):
    made = FeatureSpace(missing=missing, max_features=most)
    first = {"a": 1.0, "b": 2.0} if known is None else known
    made.admit(first, first, 0)
    return made


def test_a_row_holds_values_by_name_then_time_and_weight():
    for known in ({"a": 1, 3: 1, "b": 2}, {"b": 1, "a": 1, 3: 1}):
        row = quick(space(known=known), {"b": 5, 3: 1, "a": 4}, 7.0, 2.0)
        assert row.tolist() == [[1.0, 4.0, 5.0, 7.0, 2.0]]


def test_a_bare_array_keeps_the_first_seen_order():
    s = space(known={"b": 1, "a": 1})
    assert s.columns == ("b", "a")
    table = np.array([[1.0, 2.0]])
    for names, expected in ((None, [2.0, 1.0]), (["a", "b"], [1.0, 2.0]), (["b", "a"], [2.0, 1.0])):
        order = s.order(names, 2)
        assert order is not None
        assert s.block(table, order, 7.0, 1.0).tolist() == [[*expected, 7.0, 1.0]]
    assert s.order(["a", "c"], 2) is s.order(["a", "a"], 2) is s.order(["a"], 1) is None
    with pytest.raises(InvalidPoint, match="3 columns; 2 features are known"):
        s.order(None, 3)


@pytest.mark.parametrize("value", [3, True, np.float32(3.5), np.int8(3), Decimal("3.5"), -0.0])
def test_numbers_of_every_type_are_accepted(value):
    row = quick(space(), {"a": value, "b": 0}, 0.0, 1.0)
    assert row[0, 0] == float(value)
    slow, absent, new = space().resolve({"a": value, "b": 0}, 0.0, 1.0, 0)
    assert slow[0, 0] == float(value)
    assert (absent, new) == ((), ())


BAD = [float("nan"), float("inf"), -float("inf"), "3", b"3", None, 1e151, 10**400, [1], {}, 1j]


@pytest.mark.parametrize("value", BAD, ids=repr)
def test_what_is_no_number_is_refused_by_feature_and_value(value):
    with pytest.raises(InvalidPoint, match=r"event 8: feature 'b' is .*accepted"):
        space().resolve({"a": 1, "b": value}, 0.0, 1.0, 7)


@pytest.mark.parametrize("x", [{}, [], None, 3, "a"], ids=repr)
def test_what_is_no_event_is_refused(x):
    with pytest.raises(InvalidPoint, match="event"):
        space().resolve(x, 0.0, 1.0, 0)


@pytest.mark.parametrize("name", [1.5, None, ("a",), True], ids=repr)
def test_names_are_strings_or_integers(name):
    with pytest.raises(InvalidPoint, match="names are strings or integers"):
        space().resolve({name: 1.0}, 0.0, 1.0, 0)


def test_an_absent_feature_gets_its_stand_in_and_is_told():
    s = space()
    s.stand_ins = np.array([10.0, 20.0])
    row, absent, new = s.resolve({"b": 1.0}, 0.0, 1.0, 0)
    assert row[0, :2].tolist() == [10.0, 1.0]
    assert (absent, new) == (("a",), ())


def test_zero_stands_in_where_asked_for():
    row, absent, _ = space("zero").resolve({"b": 1.0}, 0.0, 1.0, 0)
    assert row[0, :2].tolist() == [0.0, 1.0]
    assert absent == ("a",)


def test_absence_is_refused_where_asked_for():
    with pytest.raises(InvalidPoint, match="'a' is absent and missing='refuse'"):
        space("refuse").resolve({"b": 1.0}, 0.0, 1.0, 0)


def test_new_features_come_last_and_are_bounded():
    s = space(most=3)
    assert s.resolve({"a": 1, "b": 2, "c": 3}, 0.0, 1.0, 0)[2] == ("c",)
    s.admit(("c",), {"c": 3}, 0)
    assert s.names == ("a", "b", "c")
    assert quick(s, {"c": 1, "a": 2, "b": 3}, 0.0, 1.0)[0, :3].tolist() == [2, 3, 1]
    with pytest.raises(InvalidPoint, match="max_features=3"):
        s.admit(("d",), {"d": 3}, 0)
    assert s.names == ("a", "b", "c")


def test_a_key_depends_on_the_name_alone():
    one, two = space(known={"a": 1, "b": 2, 7: 3}), space(known={7: 1, "b": 2})
    assert one.names == (7, "a", "b")
    assert one.keys[[0, 2]].tolist() == two.keys.tolist()
    assert len({*one.keys.tolist()}) == 3
    assert space(known={"7": 1}).keys[0] != two.keys[0]


def test_a_state_restores_everything():
    s = space(known={"a": 1.5, 3: 2.5})
    other = FeatureSpace(missing="median", max_features=9)
    other.from_state(s.to_state())
    assert other.names == (3, "a")
    assert other.columns == ("a", 3)
    assert other.stand_ins.tolist() == [2.5, 1.5]
    with pytest.raises(ValueError, match="do not fit"):
        other.from_state({**s.to_state(), "names": ["a", "a"]})


def test_tables_are_split_into_names_and_numbers():
    pandas = pytest.importorskip("pandas")
    names, values = table_of(pandas.DataFrame({"a": [1, 2], "b": [0.5, 1.5]}))
    assert names == ["a", "b"]
    assert values.tolist() == [[1.0, 0.5], [2.0, 1.5]]
    assert table_of(np.ones((2, 3), dtype=np.float32))[1].dtype == np.float32
    assert table_of([[Decimal(1), 2]])[1].tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("X", [[1.0, 2.0], [["a", "b"]], [[1.0, None]], np.zeros((1, 1, 1))])
def test_what_is_no_table_of_numbers_is_refused(X):
    with pytest.raises(InvalidPoint):
        table_of(X)


@given(st.dictionaries(st.text() | st.integers(), st.floats(-1e150, 1e150), min_size=1))
def test_fast_and_slow_reading_agree(x):
    s = FeatureSpace(missing="median", max_features=1000)
    s.admit(x, x, 0)
    fast = quick(s, x, 1.0, 2.0).copy()
    slow, absent, new = s.resolve(x, 1.0, 2.0, 0)
    assert fast.tobytes() == slow.tobytes()
    assert (absent, new) == ((), ())


@given(st.one_of(st.floats(), st.integers(), st.text(), st.none(), st.booleans(), st.binary()))
def test_a_value_is_accepted_iff_it_is_a_finite_number_of_bounded_magnitude(value):
    good = isinstance(value, float | int) and abs(value) <= 1e150
    if good:
        check_value(value, "a", "here")
    else:
        with pytest.raises(InvalidPoint):
            check_value(value, "a", "here")
