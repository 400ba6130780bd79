"""Small files made by hand: PDFs with text at given places, Word documents, workbooks, archives, compound files."""

import struct
import zipfile
from io import BytesIO

import docx
import openpyxl
import pytest

from retrieval.text.document import BlockKind, RawDocument


def _pdf_object(number, body):
    return b"%d 0 obj\n%s\nendobj\n" % (number, body)


def _page_content(lines):
    """Return the drawing commands of (x, y, size, text) lines."""
    commands = []
    for x, y, size, text in lines:
        escaped = text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
        commands.append(f"BT /F1 {size} Tf {x} {y} Td ({escaped}) Tj ET")
    return "\n".join(commands).encode("cp1252")


def make_pdf(*pages, info="", trailer="", drawn=""):
    """Return a PDF whose pages hold lines of (x, y, size, text), y growing up a page of 612 x 792 points.

    Each page also draws what the operators `drawn` say.
    """
    first_page = 4
    kids = " ".join(f"{first_page + 2 * index} 0 R" for index in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for index, lines in enumerate(pages):
        content = drawn.encode() + b" " + _page_content(lines)
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


SECTOR = 512
END_OF_CHAIN, FREE, FAT = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD
STORAGE, STREAM, ROOT = 1, 2, 5
#: Streams below this size stand together in sectors of 64 bytes.
SMALL = 4096


def make_compound(parts):
    """Return an OLE compound file of named streams (bytes) and storages (dicts of streams)."""
    entries = [["Root Entry", ROOT, None, b"", END_OF_CHAIN]]

    def add(parent, parts):
        for name, part in parts.items():
            kind = STREAM if isinstance(part, bytes) else STORAGE
            entries.append([name, kind, parent, part, END_OF_CHAIN])
            if kind == STORAGE:
                add(len(entries) - 1, part)

    add(0, parts)
    small = [entry for entry in entries if entry[1] == STREAM and 0 < len(entry[3]) < SMALL]
    entries[0][3], small_table = _chained([entry[3] for entry in small], small, 64)
    large = [entry for entry in entries if entry[1] != STORAGE and (entry[1] == ROOT or len(entry[3]) >= SMALL)]
    directory = ["", STREAM, None, bytes(128 * len(entries)), END_OF_CHAIN]
    table_of_small = ["", STREAM, None, struct.pack(f"<{len(small_table)}I", *small_table), END_OF_CHAIN]
    chains = [*large, table_of_small, directory]
    content, table = _chained([entry[3] for entry in chains], chains, SECTOR, first=1)
    filled = b"".join(_compound_entry(number, entries) for number in range(len(entries)))
    content = content[: (directory[4] - 1) * SECTOR] + filled.ljust(-(-len(filled) // SECTOR) * SECTOR, b"\0")
    table = [FAT, *table, *[FREE] * (SECTOR // 4 - len(table) - 1)]
    head = struct.pack("<8s16s5H", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"", 0x3E, 3, 0xFFFE, 9, 6)
    places = (directory[4], 0, SMALL, table_of_small[4], 1, END_OF_CHAIN, 0)
    head += struct.pack("<HI2I7I109I", 0, 0, 0, 1, *places, 0, *[FREE] * 108)
    return head + struct.pack(f"<{SECTOR // 4}I", *table) + content


def _chained(contents, entries, size, first=0):
    """Return the contents in sectors and the table of which sector follows which; entries learn where they start."""
    written, table = b"", []
    for content, entry in zip(contents, entries, strict=True):
        if content:
            sectors = -(-len(content) // size)
            entry[4] = first + len(table)
            table += [*range(entry[4] + 1, entry[4] + sectors), END_OF_CHAIN]
            written += content.ljust(sectors * size, b"\0")
    return written, table


def _compound_entry(number, entries):
    """Return a directory entry; the children of a storage hang on one another's right."""
    name, kind, parent, part, start = entries[number]
    children = [place for place, entry in enumerate(entries) if entry[2] == number]
    siblings = [place for place, entry in enumerate(entries) if entry[2] == parent and place > number]
    encoded = name.encode("utf-16-le") + b"\0\0"
    right = siblings[0] if siblings and parent is not None else FREE
    child = children[0] if children else FREE
    numbers = (len(encoded), kind, 1, FREE, right, child, b"", 0, 0, 0, start, len(part) if kind != STORAGE else 0)
    return struct.pack("<64sHBBIII16sIQQIQ", encoded, *numbers)


def make_zip(parts):
    written = BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            # By their standards, the type of a book or an OpenDocument file is never compressed.
            archive.writestr(name, content, zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED)
    return written.getvalue()


@pytest.fixture
def compound():
    return make_compound


@pytest.fixture
def zipped():
    return make_zip


@pytest.fixture
def xlsx_bytes():
    """Return a function that builds a workbook of one sheet by a function and returns its bytes."""

    def build(write):
        workbook = openpyxl.Workbook()
        write(workbook.active)
        written = BytesIO()
        workbook.save(written)
        return written.getvalue()

    return build


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
