from datetime import UTC, datetime, timedelta

import pytest

from corecube.connectors.types import SourceItem
from retrieval.ingest.preparation import Preparation, prepare_text
from retrieval.ingest.prepared_document import PreparedDocument, modified_at
from retrieval.text.document import Block, BlockKind, Hyperlink, ParsedDocument

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
CHANGED = datetime(2026, 5, 1, tzinfo=UTC)


def prepared(parsed=None, *, changed=CHANGED, **metadata):
    parsed = parsed or ParsedDocument("Title", (Block(BlockKind.PARAGRAPH, "Text."),), "text", metadata)
    item = SourceItem("a.md", "a.md", uri="", locator="a.md", modified_at=changed)
    return PreparedDocument(item, "f", 1, prepare_text(parsed, Preparation()))


@pytest.mark.parametrize("bad", ["\0", "\ud800", "a\0\ud800b"])
def test_nothing_that_the_database_refuses_is_left_in_a_document(bad):
    text = f"before{bad}after " * 1000
    blocks = (
        Block(BlockKind.HEADING, f"Head{bad}", level=1),
        Block(BlockKind.PARAGRAPH, text, links=(Hyperlink(f"before{bad}after", f"to{bad}"),)),
        Block(BlockKind.HEADING, f"Below{bad}", level=2),
        Block(BlockKind.PARAGRAPH, text),
    )
    document = prepared(ParsedDocument(f"Title{bad}", blocks, "markdown", {f"key{bad}": f"value{bad}"}))
    drafts = [chunk.draft for chunk in document.text.chunks]
    headings = [heading for draft in drafts for heading in draft.heading_path]
    assert headings
    links = [part for draft in drafts for link in draft.links for part in link]
    assert links
    texts = [document.text.title, *headings, *links, *(draft.text for draft in drafts)]
    for kept in (*texts, *document.text.metadata, *document.text.metadata.values()):
        assert "\0" not in kept
        assert kept.encode("utf-8")


def test_a_documents_own_date_comes_before_the_sources():
    assert modified_at(prepared(date="2025-03-01"), now=NOW) == datetime(2025, 3, 1, tzinfo=UTC)
    assert modified_at(prepared(created="2020-01-01", updated="2025-03-01"), now=NOW).year == 2025
    assert modified_at(prepared(), now=NOW) == CHANGED


def test_a_date_with_an_offset_is_kept_in_utc():
    found = modified_at(prepared(date="2025-03-01T23:00:00-05:00"), now=NOW)
    assert found.isoformat() == "2025-03-02T04:00:00+00:00"


@pytest.mark.parametrize(
    "date", ["9999-12-31T23:59:59-05:00", "0001-01-01T00:00:00+05:00", "9999-12-31", "2026-06-03", "last spring", ""]
)
def test_a_date_that_cannot_be_is_passed_over(date):
    assert modified_at(prepared(date=date), now=NOW) == CHANGED
    assert modified_at(prepared(modified=date, created="2025-03-01"), now=NOW) == datetime(2025, 3, 1, tzinfo=UTC)


def test_a_source_whose_clock_is_absurd_gives_no_date():
    assert modified_at(prepared(changed=datetime.max.replace(tzinfo=UTC)), now=NOW) is None
    assert modified_at(prepared(changed=None), now=NOW) is None


def test_clocks_may_differ_by_a_day():
    ahead = NOW + timedelta(hours=23)
    assert modified_at(prepared(changed=ahead), now=NOW) == ahead
