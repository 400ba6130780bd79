"""OpenDocument texts and presentations, written by hand."""

import pytest

from retrieval.errors import IngestError
from retrieval.ingest.parse import parse
from retrieval.text.document import RawDocument

_TYPE = "application/vnd.oasis.opendocument."
_NAMES = ("office", "text", "table", "draw", "style", "presentation", "svg-compatible")
_SPACES = " ".join(
    f'xmlns:{name.partition("-")[0]}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in _NAMES
)
META = (
    "<office:meta><dc:title>Pump book</dc:title><dc:creator>Ann</dc:creator><dc:date>2024-03-05T10:00:00</dc:date>"
    "</office:meta>"
)


def written(kind, body, *, styles="", meta=META, more=None):
    content = (
        f"<office:document-content {_SPACES}><office:automatic-styles>{styles}</office:automatic-styles>"
        f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    )
    return {"mimetype": _TYPE + kind, "content.xml": content, "meta.xml": meta, **(more or {})}


@pytest.fixture
def read(zipped):
    """Return a function that reads a text or a presentation with this body."""

    def read(body, kind="text", **changes):
        return parse(RawDocument("download", zipped(written(kind, body, **changes))))

    return read


@pytest.fixture
def shown(read, shape):
    """Return a function that gives the shape of a text with this body; a paragraph is its text alone."""

    def shown(body, **changes):
        return [text if kind == "paragraph" else (kind, text) for kind, text in shape(read(body, **changes))]

    return shown


def p(text, style="Standard"):
    return f'<text:p text:style-name="{style}">{text}</text:p>'


def h(text, level):
    return f'<text:h text:outline-level="{level}">{text}</text:h>'


def cell(text, **attributes):
    more = "".join(f' table:{name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f"<table:table-cell{more}>{p(text)}</table:table-cell>"


def row(*cells, repeated=1):
    return f'<table:table-row table:number-rows-repeated="{repeated}">{"".join(cells)}</table:table-row>'


def test_headings_paragraphs_and_facts(read, shown):
    body = h("Pressure", 2) + p("It runs at forty bar.") + h("Spares", 3) + p("The seal.") + p(" ")
    document = read(body)
    assert shown(body) == [(2, "Pressure"), "It runs at forty bar.", (3, "Spares"), "The seal."]
    assert (document.title, document.source_type) == ("Pump book", "docx")
    assert (document.metadata["author"], document.metadata["date"]) == ("Ann", "2024-03-05")


def test_a_title_is_told_by_its_style(read):
    styles = '<style:style style:name="P7" style:parent-style-name="Title"/>'
    document = read(p("Pump seven", "P7") + p("Text."), styles=styles, meta="<office:meta/>")
    assert document.title == "Pump seven"
    assert document.blocks[-1].text == "Text."


def test_spaces_signs_and_spans_are_those_that_a_reader_sees(shown):
    text = 'a<text:s text:c="2"/>b<text:tab/>c  \n d<text:line-break/><text:span>e<text:a>f</text:a></text:span>'
    (block,) = shown(p(text))
    assert " ".join(block.split()) == "a b c d ef"
    assert block.endswith("\nef")
    assert shown(p('<text:title>Pump book</text:title>: <text:s text:c="999999999999"/>x'))[0].startswith("Pump book: ")


def test_lines_of_program_text_become_one_block(shown):
    styles = '<style:style style:name="P3" style:parent-style-name="Preformatted_20_Text"/>'
    code = p("def run():", "Preformatted_20_Text") + p('<text:s text:c="4"/>return 1', "P3")
    body = f"{p('Before.')}{code}{p('After.')}{p('end()', 'P3')}"
    assert shown(body, styles=styles) == ["Before.", ("code", "def run():\n    return 1"), "After.", ("code", "end()")]


def test_lists_are_indented(shown):
    inner = f"<text:list><text:list-item>{p('inner')}</text:list-item></text:list>"
    items = f"<text:list-item>{p('one')}{p('more')}{inner}</text:list-item><text:list-item>{p('two')}</text:list-item>"
    assert shown(f"<text:list>{items}</text:list>") == [("list", "- one\n  more\n  - inner\n- two")]
    numbered = f"<text:list><text:list-item>{h('Chapter', 2)}</text:list-item></text:list>"
    assert shown(numbered + p("x")) == [(2, "Chapter"), "x"]


def test_items_have_the_numbers_that_readers_see(shown):
    levels = (
        '<text:list-level-style-number text:level="1" style:num-format="1"/>'
        '<text:list-level-style-bullet text:level="2"/>'
        '<text:list-level-style-number text:level="3" style:num-format=""/>'
    )
    styles = f'<text:list-style style:name="L1">{levels}</text:list-style>'

    def items(*texts, more=""):
        return "".join(f"<text:list-item>{p(text)}{more}</text:list-item>" for text in texts)

    inner = f"<text:list>{items('valve')}</text:list>"
    first = f'<text:list text:style-name="L1">{items("Close")}{items("Wait", more=inner)}</text:list>'
    goes_on = f'<text:list text:style-name="L1" text:continue-numbering="true">{items("Open")}</text:list>'
    anew = f'<text:list text:style-name="L1">{items("Call")}</text:list>'
    assert shown(f"{first}{p('Check.')}{goes_on}{p('Or:')}{anew}", styles=styles) == [
        ("list", "1. Close\n2. Wait\n  - valve"),
        "Check.",
        ("list", "3. Open"),
        "Or:",
        ("list", "1. Call"),
    ]


def test_tables_have_their_merged_and_repeated_cells(shown):
    empty = '<table:table-cell table:number-columns-repeated="1000"/>'
    rows = (
        f"<table:table-header-rows>{row(cell('Region'), cell('City'), cell('Sales'), empty)}</table:table-header-rows>"
        + row(cell("North", number_rows_spanned=2), cell("Oslo"), cell("3"), empty)
        + row("<table:covered-table-cell/>", cell("Bergen"), cell("4"))
        + row(cell("South", number_columns_spanned=2), "<table:covered-table-cell/>", cell("5"))
        + row(cell("x", number_columns_repeated=3))
        + row(empty, repeated=1_000_000)
    )
    text = "Region | City | Sales\nNorth | Oslo | 3\nNorth | Bergen | 4\nSouth |  | 5\nx | x | x"
    assert shown(f"<table:table>{rows}</table:table>") == [("table", text)]


def test_a_frame_around_text_is_no_table(shown):
    only = f"<table:table-cell>{h('Inside', 2)}{p('words')}</table:table-cell>"
    assert shown(f"<table:table>{row(only)}</table:table>") == [(2, "Inside"), "words"]


def test_notes_and_boxes_follow_their_paragraph(shown):
    note = (
        f"<text:note><text:note-citation>1</text:note-citation><text:note-body>{p('The note.')}</text:note-body>"
        "</text:note>"
    )
    box = f"<draw:frame><draw:text-box>{p('In the box.')}</draw:text-box><svg:desc>a drawing</svg:desc></draw:frame>"
    assert shown(p(f"Before{note} and after.{box}")) == ["Before and after.", "The note.", "In the box."]


def test_what_is_no_text_of_the_document_is_left_out(shown):
    aside = "<office:annotation><text:p>remark</text:p></office:annotation>"
    deleted = f"<text:tracked-changes><text:changed-region>{p('deleted')}</text:changed-region></text:tracked-changes>"
    contents = f"<text:table-of-content><text:index-body>{p('Chapter 1')}</text:index-body></text:table-of-content>"
    section = f"<text:section>{p(f'kept{aside}')}</text:section>"
    assert shown(deleted + contents + section) == ["kept"]


def frame(text, kind=""):
    of_class = f' presentation:class="{kind}"' if kind else ""
    return f"<draw:frame{of_class}><draw:text-box>{text}</draw:text-box></draw:frame>"


def test_slides_in_order_with_titles_and_notes(read):
    notes = (
        f"<presentation:notes>{frame(p('Say it slowly.'), 'notes')}{frame(p('7'), 'page-number')}</presentation:notes>"
    )
    outline = f"<text:list><text:list-item>{p('first')}</text:list-item></text:list>"
    shape = f"<draw:g><draw:custom-shape>{p('A label')}</draw:custom-shape></draw:g>"
    rows = row(cell("City"), cell("Sales")) + row(cell("Oslo"), cell("3"))
    table = f"<draw:frame><table:table>{rows}</table:table></draw:frame>"
    frames = frame(p("Plan"), "title") + frame(outline, "outline") + frame(p("page"), "footer")
    first = f"<draw:page>{frames}{notes}</draw:page>"
    second = f'<draw:page draw:style-name="dp2">{shape}{table}</draw:page>'
    styles = (
        '<style:style style:name="dp2"><style:drawing-page-properties presentation:visibility="hidden"/></style:style>'
    )
    document = read(first + second + "<draw:page/>", kind="presentation", styles=styles)
    assert [(it.page, it.level, it.text) for it in document.blocks] == [
        (1, 2, "Plan"),
        (1, 0, "- first"),
        (1, 0, "Notes: Say it slowly."),
        (2, 2, "Slide 2"),
        (2, 0, "A label"),
        (2, 0, "City | Sales\nOslo | 3"),
    ]
    assert (document.source_type, document.metadata["slides"], document.metadata["hidden_slides"]) == ("pptx", "3", "2")


@pytest.mark.parametrize("kind", ["text", "presentation"])
def test_hostile_and_locked_files_are_refused(zipped, kind):
    def reason_of(parts):
        with pytest.raises(IngestError) as caught:
            parse(RawDocument("download", zipped(parts)))
        return caught.value.reason

    parts = written(kind, p("x"))
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>' + parts["content.xml"]
    assert reason_of({**parts, "content.xml": bomb}) == "corrupt"
    assert reason_of({**parts, "content.xml": "<x/>"}) == "corrupt"
    assert reason_of({"mimetype": parts["mimetype"]}) == "corrupt"
    assert reason_of({**parts, "META-INF/manifest.xml": "<manifest:encryption-data/>"}) == "encrypted"
    assert reason_of(written(kind, "")) == "empty"
    assert reason_of({**parts, "content.xml": " " * 300_000_000}) == "too_large"


def test_deep_nesting_ends(read):
    deep = "<text:section>" * 5000 + p("bottom") + "</text:section>" * 5000
    with pytest.raises(IngestError):
        read(deep)
    spans = "<text:span>" * 200 + "x" + "</text:span>" * 200
    assert read(p(spans)).blocks[0].text == "x"


def test_too_many_slides_are_refused(read):
    with pytest.raises(IngestError) as caught:
        read("<draw:page/>" * 5001, kind="presentation")
    assert caught.value.reason == "too_large"
