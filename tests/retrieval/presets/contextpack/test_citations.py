"""Citation lines."""

from dataclasses import replace

import pytest

from retrieval.presets.contextpack.pack import citation, citations
from tests.passages import made

FACTS = made(1, "text", "Travel policy", ("Rail", "Seats")).hit.chunk


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, "Doc: Travel policy | Page: n/a | Section: Rail > Seats"),
        ({"heading_path": ()}, "Doc: Travel policy | Page: n/a | Section: n/a"),
        ({"page_start": 3, "page_end": 3}, "Doc: Travel policy | Page: 3 | Section: Rail > Seats"),
        ({"page_start": 3, "page_end": 4}, "Doc: Travel policy | Page: 3-4 | Section: Rail > Seats"),
        ({"page_start": 3}, "Doc: Travel policy | Page: 3 | Section: Rail > Seats"),
        (
            {"source_type": "excel", "row_start": 12, "row_end": 40},
            "Doc: Travel policy | Page: n/a | Section: Rail > Seats | Rows: 12-40",
        ),
        (
            {"source_type": "json", "row_start": 2, "row_end": 5},
            "Doc: Travel policy | Page: n/a | Section: Rail > Seats | Items: 2-5",
        ),
        (
            {"source_type": "code", "row_start": 7, "row_end": 7},
            "Doc: Travel policy | Page: n/a | Section: Rail > Seats | Lines: 7",
        ),
        ({"title": "A | Page: 9\nB"}, "Doc: A / Page: 9 B | Page: n/a | Section: Rail > Seats"),
    ],
)
def test_a_line_says_where_a_chunk_stands(changes, line):
    assert citation(replace(FACTS, **changes)) == line


def test_documents_that_share_a_title_are_told_apart_by_their_ids():
    one, other, alone = (made(number, "text", title).hit for number, title in enumerate(["Report"] * 2 + ["Plan"], 1))
    assert citations((one, other, alone, one)) == (
        f"Doc: Report | Id: {one.chunk_id.document_id} | Page: n/a | Section: n/a",
        f"Doc: Report | Id: {other.chunk_id.document_id} | Page: n/a | Section: n/a",
        "Doc: Plan | Page: n/a | Section: n/a",
        f"Doc: Report | Id: {one.chunk_id.document_id} | Page: n/a | Section: n/a",
    )
    assert citations((one, one)) == ("Doc: Report | Page: n/a | Section: n/a",) * 2
