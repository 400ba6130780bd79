"""Where links lead, as the formats that have them say it."""

import docx.opc.constants
import pytest
from docx.oxml import OxmlElement
from docx.oxml.ns import qn

from retrieval.ingest.parse import parse
from retrieval.ingest.parse.markdown import blocks_of_markdown
from retrieval.ingest.preparation import Preparation, prepare_raw
from retrieval.ingest.sandbox.frames import PREPARED

MARKDOWN = """\
See [the *guide*](../guide.md#x), <https://example.org/a>, <a class="b" href="c.html?a=1&amp;b=2">page c</a> and [r][1].

## A [heading](h.md)

- [one](1.md)
- two, and [![a picture](p.png)](two.md) [![](p.png)](none.md)

| name | page |
| --- | --- |
| x | [y](y.md) |

<p>In <a href='html.md'>HTML</a>, to [#](#here) and <a>nothing</a></p>

[1]: ref.md
"""
HTML = """<html><body><main><h1>Queues</h1><h2>With <a href="h.html">a heading</a></h2><p>First <a href="a.html">one
<b>bold</b> link</a>, then <a href="#top">top</a>.</p><ul><li><a href="li.html">item</a></li></ul><p>After <a
href="p.html">it</a></p><table><tr><th>Name</th></tr>
<tr><td><a href="t.html">cell</a></td></tr><tr><td>b</td></tr></table></main>
<footer><a href="imprint.html">Imprint</a></footer></body></html>"""
RST = """\
Guide
=====

Read `the manual <manual.html>`_, `named`_, https://example.org/x or :doc:`installing <../install>` and :doc:`faq`.

.. _named: named.html
"""


@pytest.fixture
def links(raw):
    """Return the links of a file's blocks, block by block."""

    def links_of(content, name):
        return [[tuple(link) for link in block.links] for block in parse(raw(content, name=name)).blocks if block.links]

    return links_of


def test_of_markdown(links):
    assert links(MARKDOWN, "a.md") == [
        [
            ("the guide", "../guide.md#x"),
            ("https://example.org/a", "https://example.org/a"),
            ("page c", "c.html?a=1&b=2"),
            ("r", "ref.md"),
        ],
        [("heading", "h.md")],
        [("one", "1.md"), ("a picture", "two.md")],
        [("y", "y.md")],
        [("HTML", "html.md")],
    ]


def test_of_html_without_what_surrounds_the_content(links):
    assert links(HTML, "a.html") == [
        [("a heading", "h.html")],
        [("one bold link", "a.html")],
        [("item", "li.html")],
        [("it", "p.html")],
        [("cell", "t.html")],
    ]


def test_of_restructured_text(links):
    assert links(RST, "a.rst") == [
        [
            ("the manual", "manual.html"),
            ("named", "named.html"),
            ("https://example.org/x", "https://example.org/x"),
            ("installing", "../install"),
            ("faq", "faq"),
        ]
    ]


def test_of_word(links, docx_bytes):
    def write(document):
        paragraph = document.add_paragraph("See ")
        target = document.part.relate_to(
            "https://example.org/x", docx.opc.constants.RELATIONSHIP_TYPE.HYPERLINK, is_external=True
        )
        link = OxmlElement("w:hyperlink")
        link.set(qn("r:id"), target)
        run = OxmlElement("w:r")
        text = OxmlElement("w:t")
        text.text = "the page"
        run.append(text)
        link.append(run)
        paragraph._p.append(link)

    assert links(docx_bytes(write), "a.docx") == [[("the page", "https://example.org/x")]]


def test_a_block_has_no_end_of_links():
    (block,) = blocks_of_markdown("".join(f"[n]({number}.md) " for number in range(1000)))
    assert len(block.links) == 500
    assert not blocks_of_markdown(f"[long]({'x' * 1001})")[0].links


def test_they_pass_between_processes(raw):
    prepared = prepare_raw(raw(MARKDOWN, name="a.md"), Preparation())
    assert any(chunk.draft.links for chunk in prepared.chunks)
    assert PREPARED.validate_json(PREPARED.dump_json(prepared)) == prepared
