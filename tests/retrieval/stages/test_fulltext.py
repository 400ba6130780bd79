"""The full-text leg: what is demanded, when it relaxes, and what it does with terms that are too common."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from corecube.access import scope_for
from retrieval.engine.deadline import Deadline
from retrieval.engine.query import read_query
from retrieval.engine.state import RequestFilter, SearchState
from retrieval.engine.types import QueryTerms, Term
from retrieval.index.lexemes import rarest
from retrieval.models import Document
from retrieval.stages.analyze import Analyze
from retrieval.stages.fulltext import Fulltext, FulltextConfig


@pytest.fixture
def search(world, sync_once):
    """Add nine documents about valves, three of them by title, and return the leg's search as Bob."""
    for number in range(9):
        title = "Valves" if number < 3 else f"Note {number}"
        other = "gasket" if number % 2 else "flange"
        (world.root / "runbooks" / f"{number}.md").write_text(
            f"# {title}\n\nvalve {other} {'pressure' * (number == 8)}\n"
        )
    sync_once(world.runbooks)

    def run(text, kept=None, **config):
        state = SearchState(
            query=read_query(text, characters=500),
            scope=scope_for(world.principal("bob")),
            deadline=Deadline.after(5.0),
            now=datetime(2026, 6, 1, tzinfo=UTC),
            top_k=10,
            filter=kept or RequestFilter(),
        )
        state = Fulltext(FulltextConfig(**config))(Analyze("english")(state))
        return len(state.rankings["fulltext"]), [note.code for note in state.notes], state

    return run


@pytest.mark.parametrize(
    ("text", "config", "hits", "notes"),
    [
        ("valve gasket", {"relax_below": 4}, 4, ["fulltext_all_terms"]),
        ("valve gasket", {"relax_below": 5}, 9, ["fulltext_relaxed"]),
        ("valve gasket pressure", {}, 9, ["fulltext_relaxed"]),
        ("valve unheard", {}, 9, ["fulltext_relaxed"]),
        ("unheard", {}, 0, ["fulltext_unknown_terms"]),
        ("the", {}, 0, ["fulltext_nothing"]),
        ("valve -gasket", {}, 5, ["fulltext_operators"]),
        ('"valve gasket"', {}, 4, ["fulltext_operators"]),
        ('"gasket valve"', {}, 0, ["fulltext_operators"]),
        ("gasket OR pressure", {}, 5, ["fulltext_operators"]),
        ("valve OR -gasket", {}, 0, ["fulltext_nothing"]),
    ],
)
def test_the_query_is_taken_as_meant(search, text, config, hits, notes):
    found, codes, _ = search(text, **config)
    assert (found, codes) == (hits, notes)


def test_a_term_that_is_too_common_is_looked_for_in_every_document_that_is_named(search):
    named = Document.objects.filter(external_id__in=["0.md", "4.md", "8.md"]).values_list("pk", flat=True)
    found, codes, state = search("valve", RequestFilter(documents=frozenset(named)), max_matches=3, relax_below=1)
    assert (found, codes) == (3, ["fulltext_all_terms"])
    assert {hit.chunk_id.document_id for hit in state.rankings["fulltext"]} == set(named)


@pytest.mark.parametrize(
    ("text", "notes"),
    [
        ("valve", ["fulltext_all_terms", "fulltext_capped"]),
        ("valve gasket", ["fulltext_all_terms", "fulltext_capped"]),
        ("valve unheard", ["fulltext_relaxed", "fulltext_capped"]),
        ("valve -pressure", ["fulltext_operators", "fulltext_capped"]),
    ],
)
def test_of_what_is_too_common_titles_are_ranked_first(search, text, notes):
    _, codes, state = search(text, max_matches=3, relax_below=1)
    ranking = state.rankings["fulltext"]
    assert codes == notes
    # The three titles by their index, and of the others those whose ids fall into the share.
    assert len(ranking) >= 3 if "gasket" not in text else ranking
    assert [hit.score for hit in ranking] == sorted((hit.score for hit in ranking), reverse=True)
    assert search(text, max_matches=3, relax_below=1)[2].rankings == state.rankings


def test_a_share_of_everything_ranks_as_if_nothing_were_capped(search):
    whole = search("valve", relax_below=1)[2].rankings["fulltext"]
    capped = search("valve", max_matches=8, relax_below=1)[2].rankings["fulltext"]
    assert [hit for hit in whole if hit in capped] == list(capped)
    assert capped[:3] == whole[:3]


def test_the_relaxed_ranking_is_scored_by_all_terms(search):
    _, _, state = search("valve gasket pressure")
    # Only the flange of note 8 is under pressure; gaskets and valves alone are less rare.
    best = state.rankings["fulltext"][0]
    assert best.score > state.rankings["fulltext"][1].score
    assert best.signals["fulltext"] == best.score


@pytest.mark.parametrize(
    ("counts", "cap", "taken"),
    [([0, 3, 4, 9], 10, 2), ([20, 30], 10, 1), ([0, 0], 10, 0), ([2, 3, 5], 10, 3), ([], 5, 0)],
)
def test_relaxing_takes_the_rarest_terms_under_the_cap(counts, cap, taken):
    terms = [Term(str(place), count, 1.0) for place, count in enumerate(counts)]
    rare = rarest(terms, cap=cap)
    assert len(rare) == taken
    assert all(term.document_frequency for term in rare)


def test_no_statement_is_sent_for_what_cannot_match(search):
    _, _, state = search("valve")
    impossible = QueryTerms((Term("valv", 0, 1.0),), 9, "'valv'", at_most=0)
    after = Fulltext(FulltextConfig())(replace(state, terms=impossible, notes=(), rankings={}))
    assert after.rankings["fulltext"] == ()
