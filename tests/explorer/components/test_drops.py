"""Dropped hits, and who may be named."""

import uuid

from explorer.components.drops import MAX_ROWS, drop_list, labels_of, readable
from retrieval.engine.state import Drop, DropReason
from retrieval.engine.types import ChunkId

KEPT, GONE, SECRET = (ChunkId(uuid.UUID(int=number), 2) for number in (1, 2, 3))
LABELS = {KEPT: "Runbook — Wiki", GONE: "Old runbook — Wiki"}


def test_a_drop_is_named_with_its_reason():
    found = drop_list([Drop(GONE, DropReason.DUPLICATE, f"same text as {KEPT}")], LABELS)
    assert [(row.label, row.reason, row.detail) for row in found["rows"]] == [
        ("Old runbook — Wiki", "duplicate", "same text as “Runbook — Wiki”")
    ]


def test_a_chunk_outside_the_scope_is_counted_and_never_named():
    found = drop_list([Drop(SECRET, DropReason.TOP_K, "rank 11"), Drop(KEPT, DropReason.ACCESS)], LABELS)
    assert (found["rows"], found["total"], found["listed"]) == ((), 2, "0 of 2 listed")


def test_what_was_gone_is_counted_with_its_reason_and_never_named():
    found = drop_list([Drop(KEPT, DropReason.STALE), Drop(SECRET, DropReason.STALE)], LABELS)
    assert (found["rows"], found["total"], found["listed"]) == ((), 2, "")
    assert found["gone_words"] == "2 deleted or excluded"


def test_a_detail_does_not_name_what_has_no_label():
    assert readable(f"0.93 twin of {SECRET}", LABELS) == "0.93 twin of another chunk"


def test_a_long_list_ends_in_a_count():
    found = drop_list([Drop(KEPT, DropReason.TOP_K)] * (MAX_ROWS + 7), LABELS)
    assert (len(found["rows"]), found["listed"]) == (MAX_ROWS, "100 of 107 listed")


def test_a_label_names_title_headings_and_source(finished):
    labels = labels_of(finished.state.hits, finished.state.scope)
    assert labels[finished.hits[0].chunk_id] == "Rollback runbook › Staging — Runbooks"  # noqa: RUF001
