"""Lines to events: what is accepted, and what the reason says of what is not."""

import json
import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamclust.errors import AdapterError, DecodeError
from streamclust_adapters.codec import MAX_DEPTH, CsvLines, Fields, JsonLines, decoder
from streamclust_adapters.encoder import Encoder
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
        (b"[1, 2]", "not an array"),
        (b"17", "not the number 17"),
        (b"null", "not null"),
        (b'"a"', "not the text 'a'"),
        (b'{"a": NaN}', "'a': a finite number is accepted, not nan"),
        (b'{"a": -Infinity}', "'a': a finite number is accepted, not -inf"),
        (b'{"a": 1e400}', "'a': a finite number is accepted, not inf"),
        (b'{"a": "hot"}', "feature 'a': a number is accepted, not the text 'hot'"),
        (b'{"a": null}', "feature 'a': a number is accepted, not null"),
        (b'{"a": [1]}', "feature 'a': a number is accepted, not an array"),
        (b'{"a": {"b": 1}}', "feature 'a': a number is accepted, not an object"),
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


@given(st.binary(max_size=60))
def test_any_bytes_are_an_event_or_a_decode_error(raw):
    for fields in (Fields(), ASIDE):
        for form in ("jsonl", "csv"):
            lines = decoder(form, fields, ["a", "ts", "id"] if form == "csv" else None)
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
        (b"1,1_000", "feature 'b': a number is accepted, not the text '1_000'"),
        (b'1,"2', "broken CSV"),
        (b"1,\xff", "not UTF-8: byte 0xff at column 3"),
    ],
)
def test_a_csv_line_that_holds_no_event_is_refused_with_its_reason(raw, words):
    assert words in refusal(CsvLines(Fields(), ["a", "b"]), raw)


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
