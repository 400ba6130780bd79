"""The context and its budget."""

from explorer.panels.context import context_panel
from explorer.panels.drops import labels_of
from retrieval.types import Drop, DropReason


def test_the_passages_are_shown_with_their_share_of_the_budget(finished):
    panel = context_panel(finished, {})
    assert [(row.number, row.tokens, row.share) for row in panel.passages] == [(1, 36, 0.9), (2, 30, 0.75)]
    assert (panel.used, panel.budget) == (66, 4000)
    assert panel.passages[0].text == finished.hits[0].chunk.text


def test_what_the_budget_cut_is_told_apart_from_what_was_not_wanted(finished, make_outcome):
    beyond = Drop(finished.hits[1].chunk_id, DropReason.TOP_K, "rank 11, 10 wanted")
    outcome = make_outcome(drops=(*finished.state.drops, beyond))
    panel = context_panel(outcome, labels_of(outcome.state.hits, outcome.state.scope))
    assert [(row.label, row.reason) for row in panel.cut.rows] == [
        ("Document 3 › Staging — Wiki", "over the token budget")  # noqa: RUF001
    ]
    assert panel.beyond == 1
