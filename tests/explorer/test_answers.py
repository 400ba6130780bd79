"""Answers as HTML."""

from explorer.answers import Citable, answer_html, answer_panel

PASSAGES = {
    1: Citable("/documents/a/#chunk-1", '[1] Runbook "A" — Wiki'),
    2: Citable("/documents/b/?as=bob&x=1#chunk-2", "[2] Guide — Wiki"),
}


def test_a_marker_is_a_link_to_its_passage():
    html = answer_html("> Drain the queue. [2]", PASSAGES)
    assert '<a class="citation" href="/documents/b/?as=bob&amp;x=1#chunk-2" title="[2] Guide — Wiki">[2]</a>' in html
    assert html.startswith("<blockquote>")


def test_a_number_without_a_passage_is_plain_text():
    assert answer_html("See [3] and [7].", PASSAGES) == "<p>See [3] and [7].</p>\n"


def test_an_escaped_marker_and_one_in_code_are_no_links():
    assert "<a" not in answer_html("quoted \\[1] and `[1]`", PASSAGES)


def test_html_in_a_quotation_is_escaped():
    html = answer_html('<script>alert(1)</script> <img src=x onerror="y"> [1]', PASSAGES)
    assert "<script" not in html
    assert "<img" not in html


def test_links_and_pictures_of_a_quotation_stay_text():
    html = answer_html(
        "[1](javascript:x) ![p](http://elsewhere/p.png) <http://elsewhere> [a](http://elsewhere)", PASSAGES
    )
    assert "<a" not in html
    assert "<img" not in html


def test_place_holders_in_a_quotation_make_no_link():
    assert answer_html("a \ue0001\ue001 b", PASSAGES) == "<p>a 1 b</p>\n"


def test_a_table_has_no_style_attribute():
    html = answer_html("| a | b |\n| --- | ---: |\n| 1 | 2 |", PASSAGES)
    assert "<table>" in html
    assert "style" not in html


class Parrot:
    """A provider that says what it was given."""

    name = "parrot"

    def complete(self, task):
        yield f"{task.question} "
        yield f"[{task.passages[0].number}]"

    def refuses(self, text):
        return text.startswith("Sorry")


def test_the_answer_is_written_from_the_searchs_own_passages(finished):
    panel = answer_panel(finished, Parrot(), address=lambda chunk_id: f"/d/{chunk_id.ordinal}")
    assert panel.provider == "parrot"
    assert "how to roll back staging" in panel.html
    assert 'href="/d/0" title="[1] Rollback runbook &gt; Staging — Runbooks — Engineering"' in panel.html
