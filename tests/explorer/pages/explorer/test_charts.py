"""Charts in the Explorer: what they draw is the search's, and nothing that its reader may not see."""

import json
import re
from html import unescape

from retrieval.models import Document

HIDDEN = ("Vault", "Ledger", "inance", "zanzibar", "tangerine", "Breach")


def page(response):
    return response.content.decode()


def figures(text):
    """Return the figures of a page by id, as a script reads them."""
    found = re.findall(r'<template id="chart-data-([\w-]+)">(.*?)</template>', text, re.DOTALL)
    return {name: json.loads(content) for name, content in found}


def rounded(value):
    if isinstance(value, list):
        return [rounded(item) for item in value]
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return round(value, 6) if isinstance(value, float) else value


def test_the_tab_of_the_scores_is_opened_by_the_address(browse):
    text = page(browse("bob").get("/", {"q": "rollback", "tab": "scores"}))
    assert re.search(r'data-panel="tab" data-name="scores" aria-label="Scores">', text)
    assert {"contributions", "scores-dense", "scores-fulltext", "scores-final"} <= set(figures(text))
    assert 'aria-labelledby="chart-title-contributions" aria-describedby="chart-summary-contributions"' in text


def test_the_figures_are_the_searchs(browse):
    response = browse("bob").get("/", {"q": "roll back staging", "tab": "scores"})
    drawn, hits = figures(page(response)), response.context["panels"]["hits"]
    bars = drawn["contributions"]["data"]
    sums = [sum(part or 0 for part in parts) for parts in zip(*(trace["x"] for trace in bars), strict=True)]
    assert [round(total, 9) for total in sums] == [round(row["hit"].score, 9) for row in hits]
    final = drawn["scores-final"]["data"][1]["y"]
    assert final == [row["hit"].score for row in hits]
    response = browse("bob").get("/", {"q": "roll back staging", "tab": "trace"})
    drawn = figures(page(response))
    stages = [row["label"] for row in response.context["panels"]["trace"] if row["span"].stage != "legs"]
    assert [it[0] for it in drawn["waterfall"]["data"][0]["customdata"]] == stages


def test_a_fragment_brings_its_charts_along(browse, htmx):
    assert "contributions" in figures(page(browse("bob").get("/", {"q": "rollback", "tab": "scores"}, headers=htmx)))


def test_what_a_reader_may_not_see_changes_no_chart(browse, world):
    def drawn():
        text = page(browse("bob").get("/", {"q": "rollback passphrase crowns", "tab": "scores"}))
        found = figures(text)
        assert not [word for word in HIDDEN if word in json.dumps(found)]
        # Freshness falls from one search to the next.
        return {name: rounded(figure["data"]) for name, figure in found.items()}

    before = drawn()
    Document.objects.exclude(connection=world.runbooks).delete()
    assert drawn() == before
    assert len(before["scores-dense"][0]["y"]) == 2


def test_nothing_found_draws_nothing(browse):
    text = page(browse("charlie").get("/", {"q": "rollback", "tab": "scores"}))
    assert figures(text) == {}


def test_the_script_comes_with_the_page_and_plotly_only_when_it_is_wanted(browse):
    text = page(browse("bob").get("/explorer/"))
    assert re.search(
        r'<script src="/static/js/charts.js" data-plotly="/static/vendor/plotly-basic-[\w.]+\.min\.js" defer>', text
    )
    assert not re.search(r'<script[^>]* src="[^"]*plotly', text)


def test_a_title_cannot_leave_its_figure(browse, world):
    title = "</template><script>alert(1)</script> & more"
    Document.objects.filter(connection=world.runbooks).update(title=title)
    text = page(browse("bob").get("/", {"q": "rollback", "tab": "scores"}))
    assert "<script>alert" not in text
    shown = figures(text)["contributions"]["data"][0]["customdata"][0][0]
    # What draws the charts reads some elements in a text; it is given none.
    assert "<" not in shown
    assert unescape(shown) == title
