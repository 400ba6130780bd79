"""A figure by its page, a cell by its header and row, a function by its name and by what it does."""

import io

import pypdfium2
import pytest

from corecube.models import Connection
from retrieval.ingest.sync import sync_connection

ROLLBACK = '''\
"""Releases."""

import time


def drain(queue):
    """Wait until no message is left in the queue."""
    while queue:
        time.sleep(1)


def roll_back_release(name):
    """Put the release before this one back into production and tell the captain."""
    return name
'''


def filing(pages):
    """Return a PDF with these lines on its pages."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", "", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for lines in pages:
        drawn = "".join(f"BT /F1 10 Tf 72 {700 - 14 * row} Td ({line}) Tj ET\n" for row, line in enumerate(lines))
        objects.append(f"<< /Length {len(drawn)} >>\nstream\n{drawn}endstream")
        font = "<< /Font << /F1 3 0 R >> >>"
        page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources {font} /Contents {len(objects)} 0 R >>"
        objects.append(page)
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Count {len(kids)} /Kids [{' '.join(kids)}] >>"
    body = "".join(f"{number} 0 obj\n{text}\nendobj\n" for number, text in enumerate(objects, start=1))
    document = pypdfium2.PdfDocument(f"%PDF-1.4\n{body}trailer << /Root 1 0 R /Size {len(objects) + 1} >>\n".encode())
    content = io.BytesIO()
    document.save(content)
    document.close()
    return content.getvalue()


@pytest.fixture
def find(world, client):
    root = world.root / "books"
    root.mkdir()
    prose = [f"Sentence number {number} of the report says nothing of any year." for number in range(40)]
    statement = [
        "Consolidated statements of income",
        "2020 2019",
        "Net sales $ 17,626.6 $ 16,865.2",
        "Cost of sales 11,496.7",
    ]
    (root / "annual-report.pdf").write_bytes(filing([prose, prose, [*statement, *prose[:30]], prose]))
    rows = [f"P-{number},{number % 7} bar,hall {number % 5}" for number in range(400)]
    (root / "pumps.csv").write_text("Pump,Pressure,Place\n" + "\n".join(rows))
    (root / "releases.py").write_text(ROLLBACK)
    books = Connection.objects.create(
        slug="books", name="Books", kind="folder", config={"path": str(root)}, compartment=world.runbooks.compartment
    )
    sync = sync_connection(books)
    assert (sync.added, sync.failed) == (3, 0)
    headers = {"Authorization": f"Bearer {world.key('bob')}"}

    def best(query):
        body = {"query": query, "scope": {"include": ["books"]}}
        return client.post("/api/v1/search", body, content_type="application/json", headers=headers).json()["hits"]

    return best


def test_a_figure_in_a_filing_is_found_with_its_page(find):
    hit = find("net sales 17,626.6")[0]
    assert "Net sales $ 17,626.6 $ 16,865.2" in hit["text"]
    assert hit["pages"]["start"] <= 3 <= hit["pages"]["end"]
    assert hit["pages"]["end"] - hit["pages"]["start"] <= 1


def test_a_cell_is_found_by_its_row_and_header(find):
    hits = find("pressure of pump P-317")
    hit = next(hit for hit in hits[:3] if "P-317" in hit["text"])
    assert hit["text"].startswith("Pump")
    assert "Pressure" in hit["text"].splitlines()[0]


@pytest.mark.parametrize(
    "query", ["roll_back_release", "put the release before back into production", "drain queue wait message"]
)
def test_a_function_is_found_by_its_name_and_by_what_it_does(find, query):
    hit = find(query)[0]
    assert "def drain" in hit["text"] or "def roll_back_release" in hit["text"]
    assert hit["source_type"] == "code"
