import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.errors import IngestError
from retrieval.ingest.parse import parse
from retrieval.ingest.parse.json_records import flat_lines
from retrieval.text.document import RawDocument


def read(value, name="cities.json"):
    content = value if isinstance(value, bytes) else json.dumps(value).encode()
    return parse(RawDocument(name, content))


def records(document):
    return [(block.path, block.row, block.text) for block in document.blocks]


def test_every_item_of_an_array_is_a_record_under_its_name():
    document = read([{"id": 7, "name": "Oslo", "geo": {"lat": 59.9}, "tags": ["fjord", None, True]}, {"id": 8}, "x"])
    assert records(document) == [
        (("Oslo",), 1, "id: 7\nname: Oslo\ngeo.lat: 59.9\ntags: fjord, true"),
        (("8",), 2, "id: 8"),
        ((), 3, "x"),
    ]
    assert document.blocks[0].header == "id: 7\nname: Oslo"
    assert (document.source_type, document.title) == ("json", "Cities")


def test_lists_of_objects_are_flattened_with_places_from_one():
    assert list(flat_lines({"a": [{"b": "x", "c": []}, {"b": None}, {"b": "y"}]})) == ["a[1].b: x", "a[3].b: y"]


def test_an_objects_plain_facts_are_one_record_and_its_other_members_one_each():
    document = read({"name": "my-app", "scripts": {"test": "jest"}, "private": True, "authors": [{"name": "Ann"}]})
    assert records(document) == [
        ((), None, "name: my-app\nprivate: true"),
        (("scripts",), None, "scripts.test: jest"),
        (("authors", "Ann"), 1, "name: Ann"),
    ]
    assert document.title == "my-app"


def test_an_array_that_is_only_wrapped_stands_under_no_key():
    assert records(read({"data": [{"title": "One"}]})) == [(("One",), 1, "title: One")]


def test_ndjson_counts_lines():
    document = read(b'{"title": "One"}\n\n{"title": "Two"}\n', "log.jsonl")
    assert [(path, row) for path, row, _ in records(document)] == [(("One",), 1), (("Two",), 3)]
    assert records(read(b'{"a": 1}\n{"a": 2}', "log.json")) == records(read(b'{"a": 1}\n{"a": 2}', "log.ndjson"))


def test_numbers_are_kept_as_they_are_written():
    digits = b"9" * 10_000
    assert read(b'{"a": %s, "b": 1.10, "c": 1e999, "d": NaN}' % digits).blocks[0].text == (
        f"a: {digits.decode()}\nb: 1.10\nc: 1e999\nd: NaN"
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"[" * 100_000 + b"]" * 100_000, "too_large"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "too_large"),
        (b"[" * 300 + b"{}" + b"]" * 300, "too_large"),
        (b"[" + b'{"a":1},' * 100_000 + b"{}]", "too_large"),
        (b'{"a": 1', "corrupt"),
        (b'{"a": null, "b": [], "c": {}}', "empty"),
    ],
    ids=range(6),
)
def test_what_cannot_be_read_has_a_reason(content, reason):
    with pytest.raises(IngestError) as caught:
        read(content)
    assert caught.value.reason == reason


def test_the_broken_line_is_named():
    with pytest.raises(IngestError, match=r"^Line 2 is not JSON\.$"):
        read(b'{"a": 1}\n{"secret"\n', "a.ndjson")


SCALARS = st.none() | st.booleans() | st.integers() | st.text("abc", min_size=1, max_size=4)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("xyz", min_size=1), inner, max_size=3)
)


def plain_values(value):
    if isinstance(value, dict):
        return [text for member in value.values() for text in plain_values(member)]
    if isinstance(value, list):
        return [text for item in value for text in plain_values(item)]
    return [] if value is None else [json.dumps(value).strip('"')]


@given(VALUES)
def test_every_value_stands_in_a_record(value):
    expected = sorted(plain_values(value))
    if expected:
        lines = [line for block in read(value).blocks for line in block.text.split("\n")]
        found = [text for line in lines for text in line.rpartition(": ")[2].split(", ")]
        assert sorted(found) == expected
