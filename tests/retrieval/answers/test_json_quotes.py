"""Quotes in the JSON that a request's schema describes."""

import json

import pytest

from retrieval.answers.json_quotes import shape_for
from retrieval.errors import AnswerFormatError

CITED = [{"number": 2, "title": "Leave", "url": "https://x/2"}]
STRING, INTEGER = {"type": "string"}, {"type": "integer"}


def filled(schema):
    shape = shape_for({"type": "json_schema", "json_schema": {"name": "a", "schema": schema}})
    return json.loads(shape.filled("27 days. [2]", CITED))


def an_object(required=(), **properties):
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def an_array(items):
    return {"type": "array", "items": items}


def test_an_open_format_gets_answer_and_citations():
    assert json.loads(shape_for({"type": "json_object"}).filled("x", CITED)) == {"answer": "x", "citations": CITED}
    assert filled({"type": "object", "properties": 5, "required": 7})["answer"]
    assert filled({"type": "object"}) == {"answer": "27 days. [2]", "citations": CITED}


@pytest.mark.parametrize(
    ("items", "cited"),
    [
        (STRING, "https://x/2"),
        (INTEGER, 2),
        ({}, CITED[0]),
        (an_object(["url"], url=STRING), {"url": "https://x/2"}),
        ({"$ref": "#/$defs/Source"}, {"number": 2, "title": "Leave"}),
    ],
)
def test_citations_have_the_form_of_their_items(items, cited):
    schema = an_object(["answer", "citations"], answer=STRING, citations=an_array(items))
    schema["$defs"] = {"Source": an_object(["number"], number=INTEGER, title={"anyOf": [STRING, {"type": "null"}]})}
    assert filled(schema) == {"answer": "27 days. [2]", "citations": [cited]}


def test_the_only_text_is_the_answer_and_optional_properties_are_left_out():
    schema = an_object(
        ["reply"], reply={"type": ["string", "null"]}, note=STRING, days=INTEGER, sources=an_array(INTEGER)
    )
    assert filled(schema) == {"reply": "27 days. [2]", "sources": [2]}


@pytest.mark.parametrize(
    "schema",
    [
        an_object(["days"], days=INTEGER),
        an_object(["answer", "days"], answer=STRING, days=INTEGER),
        an_object(["a", "b"], a=STRING, b=STRING),
        an_object(["answer"], answer={"type": "string", "enum": ["yes", "no"]}),
        an_object(["answer"], answer={"type": "string", "pattern": "(a+)+$"}),
        an_object(["answer", "citations"], answer=STRING, citations=an_array(an_object(["page"], page=INTEGER))),
        {"type": "array", "items": STRING},
        {"type": "object", "required": ["x"]},
        an_object(["answer"], answer={"$ref": "https://elsewhere/schema"}),
    ],
)
def test_what_quotes_do_not_fit_is_refused(schema):
    with pytest.raises(AnswerFormatError, match="citations"):
        filled(schema)
