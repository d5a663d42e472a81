"""Lines to events: what is accepted, and what the reason says of what is not."""

import json
import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamclust.errors import AdapterError, DecodeError
from streamclust_adapters.codec import decoder
from streamclust_adapters.csv_lines import CsvLines
from streamclust_adapters.decoding import Fields
from streamclust_adapters.encoder import Encoder
from streamclust_adapters.json_lines import MAX_DEPTH, JsonLines
from streamclust_adapters.stdio import LinePosition

HERE = LinePosition(7, 88)
ASIDE = Fields(ignore=frozenset({"note"}), time="ts", key="id")


def refusal(lines, raw):
    with pytest.raises(DecodeError) as caught:
        lines.decode(raw, HERE)
    assert caught.value.position == "line 7, byte 88"
    return caught.value.reason


@pytest.mark.parametrize("fields", [Fields(), ASIDE, Fields(features=("a", "b"))])
def test_numbers_under_names_are_an_event(fields):
    decoded = JsonLines(fields).decode(b'{"a": 1, "b": -2.5e3}\r', HERE)
    assert decoded.x == {"a": 1.0, "b": -2500.0}


@pytest.mark.parametrize("fields", [Fields(), ASIDE])
@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "empty line"),
        (b"   ", "empty line"),
        (b'{"a": 1', "broken JSON"),
        (b'{"a": 1} 2', "trailing"),
        (b"{a: 1}", "broken JSON"),
        (b"17", "not the number 17"),
        (b"null", "not null"),
        (b'"a"', "not the text 'a'"),
        (b'{"a": NaN}', "'a': a finite number is accepted, not nan"),
        (b'{"a": -Infinity}', "'a': a finite number is accepted, not -inf"),
        (b'{"a": 1e400}', "'a': a finite number is accepted, not inf"),
        (b'{"a": "hot"}', "feature 'a': a number is accepted, not the text 'hot'"),
        (b'{"a": null}', "feature 'a': a number is accepted, not null"),
        (b'{"a": [1]}', "feature 'a': a number is accepted, not an array"),
        (b'{"a": {"b": "x"}}', "feature 'a.b': a number is accepted, not the text 'x'"),
        (b'{"a": {"b": 1}, "a.b": 1}', "field 'a.b' stands there twice"),
        (b'[1, "x"]', "feature 'f1': a number is accepted, not the text 'x'"),
        (b"[1, [2]]", "feature 'f1': a number is accepted, not an array"),
        (b'{"a": ' + b"9" * 400 + b"}", "feature 'a': a whole number too large"),
        (b'{"a\xff": 1}', "not UTF-8: byte 0xff at column 4"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", f"more than {MAX_DEPTH} deep"),
    ],
)
def test_a_line_that_holds_no_event_is_refused_with_its_reason(fields, raw, words):
    assert words in refusal(JsonLines(fields), raw)


def test_a_bool_is_a_number_and_a_large_whole_number_is_one_too():
    for fields in (Fields(), ASIDE):
        x = JsonLines(fields).decode(b'{"a": true, "b": 123456789012345678901234567890}', HERE).x
        assert x == {"a": 1.0, "b": 123456789012345678901234567890.0}


def test_depth_counts_outside_of_texts_only_and_its_limit_is_exact():
    lines = JsonLines(ASIDE)
    deep = b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1)
    assert lines.decode(b'{"a": 1, "note": ' + deep + b"}", HERE).x == {"a": 1.0}
    assert "deep" in refusal(lines, b'{"a": 1, "note": [' + deep + b"]}")
    text = json.dumps("[" * 200 + '"{').encode()
    assert lines.decode(b'{"a": 1, "note": ' + text + b"}", HERE).x == {"a": 1.0}


NESTED = b'{"at": {"time": 9, "by": "k"}, "room": {"temp": 1, "door": {"open": true}}, "load": 2.5}'


def test_numbers_inside_of_objects_are_features_under_their_paths():
    x = {"room.temp": 1.0, "room.door.open": 1.0, "load": 2.5}
    found = Fields(time="at.time", key="at.by")
    assert JsonLines(found).decode(NESTED, HERE) == (x, 9.0, "k")
    assert JsonLines(Fields(ignore=frozenset({"at"}))).decode(NESTED, HERE).x == x
    few = Fields(ignore=frozenset({"at", "room.door"}))
    assert JsonLines(few).decode(NESTED, HERE).x == {"room.temp": 1.0, "load": 2.5}


def test_named_paths_are_read_and_absent_ones_left_out():
    names = ("load", "room.temp", "room.door.open", "room.none", "none.at.all")
    got = JsonLines(Fields(features=names, time="at.time", key="at.by")).decode(NESTED, HERE)
    assert got == ({"load": 2.5, "room.temp": 1.0, "room.door.open": 1.0}, 9.0, "k")
    (one,) = JsonLines(Fields(features=("room.temp",))).decode(NESTED, HERE).x.items()
    assert one == ("room.temp", 1.0)


def test_a_path_is_a_name_too_but_not_both_at_once():
    lines = JsonLines(Fields(features=("a.b",)))
    assert lines.decode(b'{"a.b": 3, "c": 1}', HERE).x == {"a.b": 3.0}
    assert "twice" in refusal(lines, b'{"a.b": 3, "a": {"b": 1}}')
    both = JsonLines(Fields(features=("a", "a.b")))
    assert both.decode(b'{"a": 1, "a.b": 3}', HERE).x == {"a": 1.0, "a.b": 3.0}


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b'{"room": 1}', None),
        (b'{"room": {"temp": "hot"}}', "feature 'room.temp': a number is accepted"),
        (b'{"room": {"temp": {}}}', "not an object"),
        (b'{"room": {"temp": 1}, "note": "\xff"}', "not UTF-8"),
        (b'{"room": {"temp": 1}, "note": ' + b"[" * 9999 + b"]" * 9999 + b"}", "deep"),
        (b'{"room": {"temp": 1}', "broken JSON"),
    ],
)
def test_named_paths_refuse_what_others_refuse(raw, words):
    lines = JsonLines(Fields(features=("room.temp",)))
    if words is None:
        assert lines.decode(raw, HERE).x == {}
    else:
        assert words in refusal(lines, raw)


def test_a_plain_array_has_the_named_columns_or_f0_and_on():
    assert JsonLines(Fields()).decode(b"[1, 2.5, true]", HERE).x == {"f0": 1, "f1": 2.5, "f2": 1}
    lines = JsonLines(Fields(ignore=frozenset({"f0"}), key="f2"))
    assert lines.decode(b'[1, 2, "k"]', HERE) == ({"f1": 2.0}, None, "k")
    assert lines.decode(b"[1, 2, 3, 4]", HERE).x == {"f1": 2.0, "f3": 4.0}
    named = JsonLines(Fields(features=("a", "t", "b"), time="t"))
    assert named.decode(b"[1, 60, 3]", HERE) == ({"a": 1.0, "b": 3.0}, 60.0, None)
    assert named.decode(b'{"b": 3}', HERE).x == {"b": 3.0}
    assert "2 values; 3 are accepted" in refusal(named, b"[1, 2]")


def test_a_header_that_comes_again_is_no_event():
    lines = CsvLines(Fields())
    assert [lines.decode(raw, HERE) for raw in (b"a,b", b"1,2", b"a,b")] == [
        None,
        ({"a": 1.0, "b": 2.0}, None, None),
        None,
    ]


def test_named_fields_are_set_aside():
    raw = b'{"a": 1, "note": "x", "ts": 12.5, "id": ["k", 1]}'
    assert JsonLines(ASIDE).decode(raw, HERE) == ({"a": 1.0}, 12.5, ["k", 1])


def test_only_selected_features_count_and_absent_ones_are_left_out():
    lines = JsonLines(Fields(features=("a", "b", "ts"), time="ts"))
    assert lines.decode(b'{"a": 1, "c": "any", "ts": 3}', HERE) == ({"a": 1.0}, 3.0, None)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (b"12", 12.0),
        (b"1.5", 1.5),
        (b'"1970-01-01T00:01:00Z"', 60.0),
        (b'"1970-01-01T01:00:00+01:00"', 0.0),
        (b'"1970-01-02"', 86400.0),
        (b"null", None),
    ],
)
def test_time_is_seconds_or_iso_8601(text, seconds):
    assert JsonLines(ASIDE).decode(b'{"a": 1, "ts": ' + text + b"}", HERE).t == seconds


@pytest.mark.parametrize("text", [b'"noon"', b"true", b"[1]"])
def test_other_times_are_refused(text):
    raw = b'{"a": 1, "ts": ' + text + b"}"
    assert "time 'ts': seconds or ISO 8601" in refusal(JsonLines(ASIDE), raw)


names = st.text(st.characters(codec="utf-8"), max_size=5)
floats = st.floats(allow_nan=False, allow_infinity=False)


@given(st.dictionaries(names, floats, max_size=5), st.booleans())
def test_json_numbers_survive_exactly(x, fast):
    fields = Fields() if fast else Fields(ignore=frozenset({"longer than any"}))
    assert JsonLines(fields).decode(json.dumps(x).encode(), HERE).x == x


values = st.recursive(
    floats | st.booleans() | st.none() | st.text(max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(["a", "b", "c", "a.b", "b.c"]), values, max_size=4))
def test_the_generated_type_decides_as_the_general_way_does(line):
    raw = json.dumps(line).encode()
    fields = Fields(features=("a.b", "b.c.a", "c"), time="b.a", key="a.c")
    quick, general = JsonLines(fields), JsonLines(fields)
    general._typed = None
    results = []
    for lines in (quick, general):
        try:
            results.append(lines.decode(raw, HERE))
        except DecodeError as error:
            results.append(error.reason)
    assert results[0] == results[1]


@given(st.binary(max_size=60))
def test_any_bytes_are_an_event_or_a_decode_error(raw):
    for fields in (Fields(), ASIDE, Fields(features=("a", "a.b"))):
        for form in ("jsonl", "csv"):
            lines = decoder(form, fields, ["a", "a.b", "ts", "id"] if form == "csv" else None)
            try:
                x = lines.decode(raw, HERE).x
            except DecodeError:
                continue
            assert all(isinstance(value, int | float) for value in x.values())


# CSV


def test_csv_takes_its_names_from_the_header():
    lines = CsvLines(Fields())
    assert lines.decode(b"a, b", LinePosition(1, 0)) is None
    assert lines.columns == ["a", "b"]
    assert lines.decode(b"1, 2.5", HERE).x == {"a": 1.0, "b": 2.5}


def test_csv_without_header_takes_features_as_names_of_its_columns():
    lines = CsvLines(Fields(features=("a", "id", "b"), key="id"))
    assert lines.decode(b"1,k,2", HERE) == ({"a": 1.0, "b": 2.0}, None, "k")


def test_features_select_columns_of_a_header():
    lines = CsvLines(Fields(features=("b", "c"), time="ts"))
    assert lines.decode(b"a,b,c,ts", HERE) is None
    assert lines.decode(b"zz,1,,1970-01-01T00:00:09", HERE) == ({"b": 1.0}, 9.0, None)
    assert lines.decode(b"zz,1,2,", HERE) == ({"b": 1.0, "c": 2.0}, None, None)


def test_quoted_cells_may_hold_commas():
    lines = CsvLines(Fields(key="id"), ["a", "id"])
    assert lines.decode(b'"1","x, y"', HERE) == ({"a": 1.0}, None, "x, y")


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"1", "1 columns; 2 are accepted"),
        (b"1,2,3", "3 columns; 2 are accepted"),
        (b"", "empty line"),
        (b"1,hot", "feature 'b': a number is accepted, not the text 'hot'"),
        (b"hot,cold", "feature 'a': a number is accepted, not the text 'hot'; the same holds of b"),
        (b"1,1_000", "feature 'b': a number is accepted, not the text '1_000'"),
        (b'1,"2', "broken CSV"),
        (b"1,\xff", "not UTF-8: byte 0xff at column 3"),
    ],
)
def test_a_csv_line_that_holds_no_event_is_refused_with_its_reason(raw, words):
    assert words in refusal(CsvLines(Fields(), ["a", "b"]), raw)


def test_a_header_without_the_wanted_names_is_told_and_stops_nothing():
    lines = CsvLines(Fields(features=("c",)))
    assert "no column 'c' among a, b" in refusal(lines, b"a,b")
    assert lines.decode(b"1", HERE).x == {"c": 1.0}


def test_csv_leaves_nan_to_the_model():
    assert math.isnan(CsvLines(Fields(), ["a"]).decode(b"nan", HERE).x["a"])


@pytest.mark.parametrize(
    ("fields", "raw", "words"),
    [
        (Fields(), b"1,2", "numbers only"),
        (Fields(), b"a,a", "repeated"),
        (Fields(), b"a,", "empty or repeated"),
        (Fields(), b"", "empty line"),
        (Fields(features=("a", "c")), b"a,b", "no column 'c'"),
        (Fields(time="ts"), b"a,b", "no column 'ts'"),
        (Fields(), b"a;b", "columns are separated by commas, not by ';'"),
        (Fields(key="id"), b"a,b", "no column 'id'"),
        (Fields(), b"\xff", "not UTF-8"),
    ],
)
def test_an_unusable_header_ends_the_run(fields, raw, words):
    with pytest.raises(AdapterError, match=words) as caught:
        CsvLines(fields).decode(raw, HERE)
    assert not isinstance(caught.value, DecodeError)


# answers


def test_answers_hold_what_was_asked_for():
    plain = Encoder()
    assert plain.lines([plain.answer(3, "k", 2, "core", "r")]) == (
        b'{"event":3,"cluster":2,"region":"core"}\n'
    )
    full = Encoder(key="device", rules=True)
    assert full.lines([full.answer(3, None, -1, "cold", None)]) == (
        b'{"event":3,"device":null,"cluster":-1,"region":"cold","rule":null}\n'
    )


def test_dead_letters_keep_bytes_that_are_no_text():
    encoder = Encoder()
    letter = encoder.dead_letter(4, HERE, "why", b"\xff\x00")
    assert msgspec.json.decode(encoder.lines([letter])) == {
        "event": 4,
        "line": 7,
        "byte": 88,
        "reason": "why",
        "raw_base64": "/wA=",
    }
