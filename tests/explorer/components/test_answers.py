"""Answers as HTML."""

import re
import tomllib
from pathlib import Path

import lxml.html
import pytest
from django.utils.safestring import mark_safe
from hypothesis import given
from hypothesis import strategies as st

from corecube.access import Principal
from corecube.models import User
from explorer.components.answers import Doubt, answer_html, answer_panel, marked_html
from retrieval.answers.answering import Answering
from retrieval.encoders.vector_cache import SentenceEncoder
from retrieval.llm.types import Route
from tests.fakes import HashEncoder, ScriptedProvider

INJECTIONS = tomllib.loads((Path(__file__).parents[2] / "retrieval/answers/injections.toml").read_text())["injection"]
PASSAGES = {
    1: ("/documents/a/#chunk-1", '[1] Runbook "A" — Wiki'),
    2: ("/documents/b/?as=bob&x=1#chunk-2", "[2] Guide — Wiki"),
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
    assert answer_html("a \U00010af01\U00010af1 b", PASSAGES) == "<p>a 1 b</p>\n"


def test_emphasis_before_a_marker_ends():
    assert "<strong>Drain it.</strong><a" in answer_html("**Drain it.**[1]", PASSAGES)


SIGN = mark_safe("<i>?</i>")


def doubtful(text, sentence):
    start = text.index(sentence)
    return marked_html(text, {1: mark_safe("<a>1</a>")}, [Doubt(start, start + len(sentence), SIGN)])


def test_a_doubtful_sentence_is_wrapped_and_followed_by_its_sign():
    html = doubtful("All well. It is **nine** hours. [1] Good.", "It is **nine** hours. [1]")
    expected = 'All well. <span class="doubt">It is <strong>nine</strong> hours. <a>1</a></span><i>?</i> Good.'
    assert html == f"<p>{expected}</p>\n"


def test_a_doubtful_item_stays_an_item():
    html = doubtful("- one\n- two. [1]", "- two. [1]")
    assert '<li><span class="doubt">two. <a>1</a></span><i>?</i></li>' in html


def test_a_doubt_that_would_cut_an_element_only_gets_its_sign():
    html = doubtful("**All. Nine hours** more.", "Nine hours** more.")
    assert html == "<p><strong>All. Nine hours</strong> more.<i>?</i></p>\n"


def test_a_language_of_a_fence_becomes_no_attribute():
    assert marked_html("```py[1]\nx\n```", {1: mark_safe("<a>1</a>")}) == '<pre tabindex="0"><code>x\n</code></pre>\n'


def test_a_doubtful_row_leaves_the_table_whole():
    row = "| Draining | 9 minutes |"
    html = doubtful(f"| Step | Time |\n| --- | --- |\n{row}", row)
    assert "<td>Draining</td>\n<td>9 minutes<i>?</i></td>" in html
    head = "| Step | Time |"
    assert "<th>Time<i>?</i></th>" in doubtful(f"{head}\n| --- | --- |\n{row}", head)


def test_a_doubt_over_several_blocks_only_gets_its_sign():
    assert "span" not in doubtful("One\n\ntwo.", "One\n\ntwo.")


@given(st.text("ab. [1]*_`>-#\n|<&"), st.integers(0, 30), st.integers(0, 30))
def test_every_doubt_has_one_sign_and_elements_stay_whole(text, start, length):
    end = min(start + length, len(text))
    html = marked_html(text, {1: mark_safe("<a>1</a>")}, [Doubt(min(start, end), end, SIGN)])
    assert html.count("<i>?</i>") == 1
    balanced(html)


def balanced(html):
    opened = []
    for closes, name in re.findall(r"<(/?)(\w+)[^>]*>", html):
        if not closes and name not in {"br", "hr"}:
            opened.append(name)
        elif closes:
            assert opened.pop() == name
    assert opened == []


@pytest.mark.parametrize("text", [pytest.param(it["text"], id=it["kind"]) for it in INJECTIONS])
def test_what_a_document_makes_a_model_write_leads_nowhere(text):
    html = lxml.html.fromstring(f"<div>{answer_html(f'{text} [1] {text}', PASSAGES)}</div>")
    found = {(element.tag, name) for element in html.iter() for name in element.attrib}
    allowed = {("a", "class"), ("a", "href"), ("a", "title"), ("code", "class"), ("ol", "start"), ("pre", "tabindex")}
    assert found <= allowed
    assert {link.get("href") for link in html.iter("a")} <= {address for address, _ in PASSAGES.values()}
    assert not {element.tag for element in html.iter()} & {"img", "script", "iframe", "form", "input", "link", "svg"}


def test_a_table_scrolls_by_keyboard_and_aligns_numbers_without_a_style_attribute():
    html = answer_html("| a | b |\n| --- | ---: |\n| 1 | 2 |", PASSAGES)
    assert html.startswith('<div class="table-scroll" role="group" aria-label="Table" tabindex="0"><table>')
    assert '<td class="is-number">2</td>' in html
    assert "style" not in html


def test_a_table_that_an_answer_writes_as_html_is_text():
    assert answer_html("a <table> and <pre>", PASSAGES) == "<p>a &lt;table&gt; and &lt;pre&gt;</p>\n"


def test_the_answer_is_written_from_the_searchs_own_passages(finished):
    provider = ScriptedProvider("how to roll back ", "staging [1]", name="parrot")
    answering = Answering(
        outcome=finished,
        principal=Principal(User(username="alice")),
        route=Route((provider,)),
        encoder=HashEncoder(),
        sentences=SentenceEncoder(HashEncoder()),
        question="how to roll back staging",
    )
    panel = answer_panel(answering, address=lambda chunk_id: f"/d/{chunk_id.ordinal}")
    assert panel["provider"] == "parrot"
    assert provider.tasks[0].passages == finished.passages
    assert "how to roll back staging" in panel["html"]
    assert 'href="/d/0" title="[1] Rollback runbook &gt; Staging — Runbooks — Engineering"' in panel["html"]
