"""Small files made by hand: PDFs with text at given places, Word documents."""

from io import BytesIO

import docx
import pytest

from retrieval.ingest.types import BlockKind, RawDocument


def _pdf_object(number, body):
    return b"%d 0 obj\n%s\nendobj\n" % (number, body)


def _page_content(lines):
    """Return the drawing commands of (x, y, size, text) lines."""
    commands = []
    for x, y, size, text in lines:
        escaped = text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
        commands.append(f"BT /F1 {size} Tf {x} {y} Td ({escaped}) Tj ET")
    return "\n".join(commands).encode("cp1252")


def make_pdf(*pages, info="", trailer=""):
    """Return a PDF whose pages hold lines of (x, y, size, text), y growing up a page of 612 x 792 points."""
    first_page = 4
    kids = " ".join(f"{first_page + 2 * index} 0 R" for index in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for index, lines in enumerate(pages):
        content = _page_content(lines)
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >>"
            b" /Contents %d 0 R >>" % (first_page + 2 * index + 1)
        )
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))
    objects.append(f"<< {info} >>".encode())
    body = b"%PDF-1.7\n"
    places = []
    for number, content in enumerate(objects, start=1):
        places.append(len(body))
        body += _pdf_object(number, content)
    rows = "".join(f"{place:010d} 00000 n \n" for place in places)
    table = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{rows}"
    root = f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R /Info {len(objects)} 0 R {trailer} >>"
    return body + f"{table}{root}\nstartxref\n{len(body)}\n%%EOF".encode()


def column(*texts, top=700, left=72, size=10, leading=12):
    """Return lines of text below one another; an empty text leaves a line free."""
    return [(left, top - leading * row, size, text) for row, text in enumerate(texts) if text]


@pytest.fixture
def pdf():
    return make_pdf


@pytest.fixture
def lines():
    return column


@pytest.fixture
def docx_bytes():
    """Return a function that builds a Word document by a function and returns its bytes."""

    def build(write):
        document = docx.Document()
        write(document)
        written = BytesIO()
        document.save(written)
        return written.getvalue()

    return build


@pytest.fixture
def raw():
    def make(content, name="folder/some-file.md", media_type=""):
        return RawDocument(name, content.encode() if isinstance(content, str) else content, media_type)

    return make


@pytest.fixture
def shape():
    """Return a function that shows blocks as (kind, text) pairs, headings as (level, text)."""

    def of(document_or_blocks):
        blocks = getattr(document_or_blocks, "blocks", document_or_blocks)
        return [(block.level if block.kind is BlockKind.HEADING else block.kind.value, block.text) for block in blocks]

    return of
