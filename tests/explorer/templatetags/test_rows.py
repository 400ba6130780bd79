"""Rows that are made without a template for each: what stands in them is escaped, and leads where it should."""

import lxml.html

from explorer.components.drops import DropRow
from explorer.components.lanes import Card, Place
from explorer.components.snippets import Segment
from explorer.pages.evaluation.judge import judge_strip
from explorer.pages.explorer.ledger_rows import LedgerRow
from explorer.templatetags.explorer_format import (
    decision_rows,
    drop_rows,
    grade_buttons,
    lane_card,
    part_rows,
    table_rows,
    trail,
)
from retrieval.engine.types import TermMatch
from retrieval.records.judgments import Graded, PassageId
from tests.explorer.conftest import chunk_id

EVIL = "<script>\"&'"


def html(text):
    return lxml.html.fromstring(f"<div>{text}</div>")


def test_a_card_tells_all_of_its_chunk():
    card = Card(
        rank=3,
        chunk_id=chunk_id(1, 7),
        score="0.500",
        title=(Segment("Roll"), Segment(EVIL, matched=True)),
        trail=("Staging", EVIL),
        snippet=(Segment(EVIL),),
        source=EVIL,
        hue="teal",
        places=(Place(EVIL, "2", "up", "↑"), Place("Full text", "–")),  # noqa: RUF001 -- a dash for nowhere
    )
    shown = html(lane_card(card, "bob & co"))
    assert not shown.xpath(".//script")
    link = shown.find_class("lane-link")[0]
    assert link.get("href") == f"/documents/{chunk_id(1).document_id}/?as=bob+%26+co#chunk-7"
    assert link.text_content() == f"Roll{EVIL} › Staging › {EVIL}"  # noqa: RUF001 -- as headings are parted
    assert [it.text for it in shown.iter("mark")] == [EVIL]
    assert shown.find_class("lane-snippet")[0].text_content() == EVIL
    assert shown.find_class("lane-source")[0].text_content() == EVIL
    assert shown[0].get("class") == "lane-card is-hue-teal"
    assert [it.get("class") for it in shown.find_class("lane-place")] == ["lane-place is-up", "lane-place"]


def test_a_card_without_a_chunk_tells_its_place_alone():
    shown = html(lane_card(Card(2, None, "0.400", title=(Segment("hidden"),), snippet=(Segment("hidden"),)), ""))
    assert shown[0].get("class") == "lane-card is-alone"
    assert not list(shown.iter("a"))
    assert "hidden" not in shown.text_content()
    assert "Deleted or not visible to you" in shown.text_content()
    assert len(shown.find_class("faint")) == 2


def test_a_drop_leads_to_its_passage_and_to_where_it_went():
    drops = [DropRow(chunk_id(1, 2), EVIL, "floor", EVIL)]
    shown = html(drop_rows(drops, "bob", "?q=a&tab=where"))
    passage, where = shown.iter("a")
    assert passage.get("href").endswith("/?as=bob#chunk-2")
    assert where.get("href") == where.get("hx-get") == f"?q=a&tab=where&pin={chunk_id(1).document_id}"
    assert passage.text_content() == EVIL
    assert not shown.xpath(".//script")
    assert not html(drop_rows(drops, "")).find_class("drop-where")


def test_the_grade_that_was_given_is_pressed():
    strip = judge_strip(4, PassageId(chunk_id(1).document_id, "hash"), Graded(grade=2, own=2, others=0))
    clear, *buttons = html(grade_buttons(strip)).iter("button")
    assert clear.get("value") == f"{chunk_id(1).document_id}:hash="
    assert clear.get("disabled") is None
    assert [it.get("aria-pressed") for it in buttons] == ["false", "false", "true", "false"]
    assert [it.get("id") for it in buttons] == [f"judge-4-{grade}" for grade in range(4)]
    assert buttons[3].get("value") == f"{chunk_id(1).document_id}:hash=3"
    assert {it.get("hx-post") for it in buttons} == {"/judge/"}


def test_rows_of_a_table_are_named_by_their_first_cell():
    assert table_rows([(EVIL, "1"), ("b",)]) == (
        '<tr><th scope="row">&lt;script&gt;&quot;&amp;&#x27;</th><td>1</td></tr><tr><th scope="row">b</th></tr>'
    )


def test_headings_follow_a_title():
    assert html(trail(["One", EVIL])).text_content() == f" › One › {EVIL}"  # noqa: RUF001 -- as headings are parted


def test_a_line_of_a_ledger_tells_all_of_its_signal():
    row = LedgerRow(
        signal="fulltext",
        label=EVIL,
        value="+0.125",
        facts=("rank 2 of 9", EVIL),
        formula="0.5 of it",
        config_key="blend.fulltext",
        terms=(TermMatch("staging", 1.234, 0.5678, "A"),),
        absent=True,
        amount=1 / 8,
    )
    shown = html(part_rows([row]))
    assert not shown.xpath(".//script")
    assert shown.find_class("swatch")[0].get("class") == "swatch is-fulltext is-absent"
    assert shown.find_class("ledger-label")[0].text_content() == EVIL
    assert shown.xpath(".//data/@value") == ["0.125"]
    assert shown.find_class("ledger-facts")[0].text_content() == f"rank 2 of 9 · {EVIL}"
    assert [cell.text_content() for cell in shown.xpath(".//tbody/tr/*")] == ["staging", "title", "idf 1.23", "0.568"]
    assert shown.find_class("ledger-formula")[0].text_content() == "0.5 of itblend.fulltext"


def test_a_decision_has_neither_colour_nor_amount():
    shown = html(decision_rows([LedgerRow("access", "Access", "allowed", ("group finance",))]))
    assert shown.xpath(".//dd/@class") == ["ledger-value is-good", "ledger-facts"]
    assert not shown.find_class("swatch")
