import zipfile
from io import BytesIO

import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

from retrieval.errors import IngestError
from retrieval.ingest.parse import parse
from retrieval.ingest.parse.docx import parse_docx


def xml(markup):
    return parse_xml(markup.replace(" ", f" {nsdecls('w')} ", 1) if "xmlns" not in markup else markup)


def test_everything_comes_in_document_order(raw, docx_bytes, shape):
    def write(document):
        document.add_heading("Release handbook", 0)
        document.add_paragraph("Read this first.")
        document.add_heading("Rolling back", 1)
        document.add_paragraph("Drain the queue", style="List Bullet")
        document.add_paragraph("Tell the captain", style="List Number")
        table = document.add_table(2, 2)
        for cell, text in zip(table._cells, ("Name", "Role", "Ann", "Captain"), strict=True):
            cell.text = text
        document.add_heading("Afterwards", 2)
        document.add_paragraph("Write it down.")

    document = parse_docx(raw(docx_bytes(write), name="handbook.docx"))
    assert document.title == "Release handbook"
    assert document.source_type == "docx"
    assert shape(document) == [
        ("paragraph", "Read this first."),
        (1, "Rolling back"),
        ("list", "- Drain the queue\n1. Tell the captain"),
        ("table", "Name | Role\nAnn | Captain"),
        (2, "Afterwards"),
        ("paragraph", "Write it down."),
    ]
    assert document.blocks[3].header == "Name | Role"


def test_items_have_the_numbers_that_readers_see(raw, docx_bytes, shape):
    levels = "".join(
        f'<w:lvl w:ilvl="{level}"><w:start w:val="{start}"/><w:numFmt w:val="{kind}"/></w:lvl>'
        for level, (start, kind) in enumerate(((3, "decimal"), (1, "lowerLetter"), (1, "bullet")))
    )

    def write(document):
        numbering = document.part.numbering_part.element
        numbering.insert(0, xml(f'<w:abstractNum w:abstractNumId="90">{levels}</w:abstractNum>'))
        anew = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride>'
        for identity, override in ((91, ""), (92, anew)):
            numbering.append(xml(f'<w:num w:numId="{identity}"><w:abstractNumId w:val="90"/>{override}</w:num>'))
        for identity, level, text in (
            (91, 0, "Close"), (91, 1, "Shaft"), (91, 1, "Valve"), (91, 2, "Red"), (91, 0, "Wait"), (91, 1, "Rest"),
            (92, 0, "Open"), (92, 0, "Test"), (99, 0, "Unknown"),
        ):  # fmt: skip
            properties = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{identity}"/></w:numPr>'
            document.element.body.append(xml(f"<w:p ><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"))

    assert shape(parse_docx(raw(docx_bytes(write), name="a.docx"))) == [
        ("list", "3. Close\n  a. Shaft\n  b. Valve\n    - Red\n4. Wait\n  a. Rest\n1. Open\n2. Test\n- Unknown")
    ]


def test_properties_of_the_file_are_kept(raw, docx_bytes):
    def write(document):
        document.core_properties.title = "Plan"
        document.core_properties.author = "Ann"
        document.add_paragraph("Text.")

    document = parse_docx(raw(docx_bytes(write), name="x.docx"))
    assert (document.title, document.metadata["author"]) == ("Plan", "Ann")


def test_content_controls_and_changes_are_read_as_a_reader_sees_them(raw, docx_bytes, shape):
    def write(document):
        document.element.body.insert(
            0, xml("<w:sdt ><w:sdtContent><w:p><w:r><w:t>In a control.</w:t></w:r></w:p></w:sdtContent></w:sdt>")
        )
        document.element.body.insert(
            1,
            xml(
                "<w:p ><w:r><w:t>Kept</w:t></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del>"
                "<w:ins><w:r><w:tab/><w:t>added</w:t></w:r></w:ins></w:p>"
            ),
        )

    document = parse_docx(raw(docx_bytes(write), name="x.docx"))
    assert shape(document) == [("paragraph", "In a control."), ("paragraph", "Kept\tadded")]


def test_merged_cells_are_repeated_down_and_left_free_across(raw, docx_bytes, shape):
    def write(document):
        table = document.add_table(3, 3)
        for cell, text in zip(table._cells, "abcdefghi", strict=True):
            cell.text = text
        table.cell(1, 0).merge(table.cell(2, 0))
        table.cell(0, 1).merge(table.cell(0, 2))

    ((_, text),) = shape(parse_docx(raw(docx_bytes(write), name="x.docx")))
    assert text == "a | b c |\nd g | e | f\nd g | h | i"


def test_a_frame_of_one_cell_is_looked_into(raw, docx_bytes, shape):
    def write(document):
        document.add_table(1, 1).cell(0, 0).text = "Boxed."

    assert shape(parse_docx(raw(docx_bytes(write), name="x.docx"))) == [("paragraph", "Boxed.")]


def test_a_style_that_builds_on_a_heading_is_a_heading(raw, docx_bytes, shape):
    def write(document):
        style = document.styles.add_style("Our chapter", 1)
        style.base_style = document.styles["Heading 2"]
        document.add_paragraph("Chapter", style="Our chapter")
        document.add_paragraph("Text.")

    assert shape(parse_docx(raw(docx_bytes(write), name="x.docx"))) == [(2, "Chapter"), ("paragraph", "Text.")]


def test_the_table_of_contents_is_left_out(raw, docx_bytes, shape):
    def write(document):
        document.styles.add_style("toc 1", 1)
        document.add_paragraph("Rolling back 7", style="toc 1")
        document.add_paragraph("Text.")

    assert shape(parse_docx(raw(docx_bytes(write), name="x.docx"))) == [("paragraph", "Text.")]


def archive(**entries):
    written = BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in entries.items():
            made.writestr(name.replace("__", "/") + ".xml", content)
    return written.getvalue()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"PK\x03\x04 cut off", "corrupt"),
        (archive(other="x"), "corrupt"),
        (archive(word__document=b"\0" * 40_000_000), "too_large"),
    ],
)
def test_a_bad_archive_is_refused_before_it_is_opened(content, reason, raw):
    with pytest.raises(IngestError) as caught:
        parse_docx(raw(content, name="x.docx"))
    assert caught.value.reason == reason


def test_an_archive_of_many_entries_is_refused(raw, monkeypatch):
    monkeypatch.setattr("retrieval.ingest.parse.containers._MAX_ENTRIES", 1)
    with pytest.raises(IngestError) as caught:
        parse_docx(raw(archive(word__document="x", other="x"), name="x.docx"))
    assert caught.value.reason == "too_large"


def with_body(original, body):
    """Return a Word document with another main part."""
    written = BytesIO()
    with zipfile.ZipFile(BytesIO(original)) as source, zipfile.ZipFile(written, "w") as target:
        for entry in source.namelist():
            target.writestr(entry, body if entry == "word/document.xml" else source.read(entry))
    return written.getvalue()


def document_with(doctype):
    text = "<w:p><w:r><w:t>A &x; B</w:t></w:r></w:p>"
    return f"<!DOCTYPE x [{doctype}]><w:document {nsdecls('w')}><w:body>{text}</w:body></w:document>"


def test_an_entity_bomb_is_refused(raw, docx_bytes):
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    body = document_with(f'<!ENTITY l0 "lol">{entities}<!ENTITY x "&l9;">')
    content = with_body(docx_bytes(lambda document: document.add_paragraph("x")), body)
    with pytest.raises(IngestError) as caught:
        parse(raw(content, name="x.docx"))
    assert caught.value.reason == "corrupt"


def test_external_entities_are_not_read(raw, docx_bytes, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("passphrase")
    body = document_with(f'<!ENTITY x SYSTEM "file://{secret}">')
    content = with_body(docx_bytes(lambda document: document.add_paragraph("x")), body)
    assert "passphrase" not in parse(raw(content, name="x.docx")).blocks[0].text
