import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corecube.errors import ConfigError
from retrieval.errors import TunablesError
from retrieval.ingest.chunk import _CHUNKERS
from retrieval.presets.consolidated.evidence.section_reading import SHIPPED, read_section_set, shipped
from retrieval.presets.consolidated.evidence.sections import NUMBERS, Defaults, SectionSet


@pytest.fixture
def written():
    """Return a shipped set as JSON holds it."""
    return json.loads(json.dumps(shipped("property_memo").to_mapping()))


@pytest.mark.parametrize("name", SHIPPED)
def test_a_set_comes_back_from_json_as_it_was(name):
    found = shipped(name)
    assert read_section_set(json.loads(json.dumps(found.to_mapping()))) == found
    assert found.name == name


@given(st.data())
def test_an_edited_set_comes_back_too(data):
    written = copy.deepcopy(shipped("report").to_mapping())
    for row in written["sections"]:
        row["score_floor"] = data.draw(st.floats(0, 1))
        row["complexity"] = data.draw(st.integers(1, 40))
    found = read_section_set(written)
    assert read_section_set(json.loads(json.dumps(found.to_mapping()))) == found


def test_a_section_without_a_number_follows_the_default(written):
    assert "score_floor" not in next(row for row in written["sections"] if row["name"] == "key_metrics")
    written["defaults"]["score_floor"] = 0.2
    found = read_section_set(written)
    assert found.section("key_metrics").score_floor == 0.2
    assert found.section("exit_strategy").score_floor == 0.10


def test_an_empty_list_of_a_section_stands_against_the_default(written):
    written["sections"][0]["never_recovered"] = []
    found = read_section_set(written)
    assert found.sections[0].never_recovered == ()
    assert read_section_set(found.to_mapping()) == found


def test_everything_that_is_wrong_is_named(written):
    first, second = written["sections"][0], written["sections"][1]
    first |= {"score_floor": 2, "complexity": "much", "speed": 1, "keep": True, "cap": 20.5}
    second |= {"title": 3, "required": "excel", "survivor_floors": {"excel": 1.5}}
    del second["template"]
    written["defaults"]["quality_floor"] = -1
    written["extra"] = 1
    with pytest.raises(TunablesError) as caught:
        read_section_set(written)
    assert caught.value.problems == {
        "section_set.extra": "is unknown",
        "defaults.quality_floor": "must be between 0.0 and 1.0",
        "executive_summary.speed": "is unknown",
        "executive_summary.complexity": "must be a number",
        "executive_summary.cap": "must be a whole number",
        "executive_summary.keep": "must be a number",
        "executive_summary.score_floor": "must be between 0.0 and 1.0",
        "investment_rationale.title": "must be a text",
        "investment_rationale.required": "must be a list",
        "investment_rationale.survivor_floors.excel": "must be a whole number",
        "investment_rationale.template": "is missing",
    }


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda it: it.update(sections=[]), "sections must not be empty"),
        (lambda it: it["sections"].append(it["sections"][0]), "contain a name twice"),
        (lambda it: it["source_types"].append({"name": "csv"}), "source_types contain a name twice"),
        (lambda it: it["source_types"].append({"name": "C S V"}), "must start with a letter"),
        (lambda it: it["sections"][0].update(optional=["fax"]), "unknown source types: fax"),
        (lambda it: it["defaults"].update(never_recovered=["fax"]), "unknown source types: fax"),
        (lambda it: it["sections"][0].update(required=["excel"]), "executive_summary is invalid"),
        (lambda it: it.update(name="A B"), "name must start with a letter"),
        (lambda it: it.update(title=""), "title must not be empty"),
        (lambda it: it.update(sections="all"), "sections must be a list"),
        (lambda it: it.update(sections=[1]), "sections.1 must be a table"),
        (lambda it: it.update(sections=it["sections"] * 6), "must not be more than 100"),
        (lambda it: it["sections"][0].update(quantity_floors=3), "must be a table"),
    ],
)
def test_what_makes_no_set_is_refused(written, change, said):
    change(written)
    with pytest.raises(TunablesError, match=said):
        read_section_set(written)


@pytest.mark.parametrize("junk", [None, [], "set", 3])
def test_junk_is_no_set(junk):
    with pytest.raises(TunablesError):
        read_section_set(junk)


def test_an_unknown_set_is_named():
    with pytest.raises(ConfigError, match="Available sets: property_memo, report"):
        shipped("poem")


def test_a_set_that_is_made_by_hand_is_checked_too():
    with pytest.raises(ConfigError, match="sections must not be empty"):
        SectionSet(name="a", title="A", source_types=(), sections=(), defaults=Defaults())


def test_kinds_of_documents_count_as_their_canonical_type():
    memo = shipped("property_memo")
    assert [memo.canonical(it) for it in ("csv", "excel", "pptx", "html")] == ["excel", "excel", "pdf", "html"]
    assert memo.stored_as("excel") == ("excel", "csv")
    assert memo.stored_as("html") == ("html",)


def test_the_report_knows_every_source_type_that_documents_can_have():
    report = shipped("report")
    assert {report.canonical(it) for it in _CHUNKERS} <= set(report.precedence)


@pytest.mark.parametrize("name", SHIPPED)
def test_every_default_is_a_number_that_sections_have(name):
    assert set(shipped(name).defaults.numbers) <= set(NUMBERS)
