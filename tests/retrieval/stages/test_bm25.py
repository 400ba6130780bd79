"""The BM25 leg: what it finds, for whom, and what it says without an index."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from corecube.access import scope_for
from retrieval.engine.deadline import Deadline
from retrieval.engine.query import read_query
from retrieval.engine.state import DropReason, RequestFilter, SearchState
from retrieval.index import active
from retrieval.index.bm25.follower import follower
from retrieval.ingest.sync import sync_connection
from retrieval.models import Chunk, Document
from retrieval.presets.corecube.config import CorecubeConfig
from retrieval.ranking.signals import in_two_digits
from retrieval.search import runtime
from retrieval.search.request import SearchRequest
from retrieval.search.service import round_for_viewer, search
from retrieval.stages.analyze import Analyze
from retrieval.stages.bm25 import Bm25, Bm25Config
from retrieval.stages.complete import Complete

NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def kept(settings):
    settings.CORECUBE_BM25 = True


@pytest.fixture
def library(world, sync_once):
    """More documents: identifiers, errors, words that stem, a language that is not stemmed."""
    for name, text in {
        "limits.md": "# Limits\n\nretry_limit of corecube.settings is for parseConfig in src/app/limits.py.\n",
        "errors.md": "# Errors\n\nERR_CONNECTION_REFUSED means that release 1.2.3 refused; C++ clients saw E-4711.\n",
        "drain.md": "# Draining\n\nDrained queues were draining while the drains drained.\n",
    }.items():
        (world.root / "runbooks" / name).write_text(text)
    world.ledger.language = "german"
    world.ledger.save()
    (world.root / "ledger" / "haus.md").write_text("# Häuser\n\nDie Häuser kosten 48,200 Kronen.\n")
    sync_once(world.runbooks, world.ledger)
    return world


@pytest.fixture
def leg(library):
    """Return the leg's search as somebody, over an index that was just built."""
    follower().rebuild()

    def run(text, name="alice", deadline=5.0, kept=None, *, is_admin=True, **config):
        state = SearchState(
            query=read_query(text, characters=500),
            scope=scope_for(library.principal(name)),
            deadline=Deadline.after(5.0),
            now=NOW,
            top_k=10,
            filter=kept or RequestFilter(),
            is_admin=is_admin,
        )
        stage = Bm25(Bm25Config(**config), runtime.bm25_reader(), "english")
        return stage(Analyze("english")(state))

    return run


def test_the_parts_of_a_compound_are_searched(leg, settings):
    settings.CORECUBE_TEXT_SEARCH_CONFIG = "german"
    follower().rebuild()
    state = leg("Wie teuer sind die Häuserkosten?")
    assert state.terms.compounds == {"haus", "kost"}
    assert titles(state) == ["haus.md"]


def titles(state):
    names = dict(Document.objects.values_list("pk", "external_id"))
    return [names[hit.chunk_id.document_id] for hit in state.rankings["bm25"]]


def codes(state):
    return [note.code for note in state.notes]


NAMED = {
    "limits.md": (
        "retry_limit",
        "limit of retries",
        "parseConfig",
        "parse config",
        "limits.py",
        "src/app/limits.py",
        "corecube.settings",
    ),
    "errors.md": ("ERR_CONNECTION_REFUSED", "connection refused", "1.2.3", "C++"),
    "drain.md": ("how is something drained?",),
    "haus.md": ("Häuser", "hauser"),
    "rollback-costs.md": ("48,200 crowns",),
}


def test_names_are_found_as_written_and_by_their_parts(leg):
    assert {text: titles(leg(text))[0] for texts in NAMED.values() for text in texts} == {
        text: first for first, texts in NAMED.items() for text in texts
    }


def test_a_question_of_stop_words_finds_nothing_and_says_so(leg):
    state = leg("what is the of", "bob")
    assert (titles(state), codes(state)) == ([], ["bm25_nothing"])


def test_words_beside_a_phrase_bring_others_after_those_that_hold_it(leg):
    state = leg('why "drain the queue" before release')
    assert set(titles(state)[:2]) == {"rollback.md", "queues.txt"}
    assert len(titles(state)) > 2
    assert codes(state) == ["bm25_relaxed"]
    assert set(titles(leg('"drain the queue"'))) == {"rollback.md", "queues.txt"}
    assert "drain.md" not in titles(leg("draining -drains"))


def test_no_more_than_the_depth_are_found(leg):
    assert len(titles(leg("rollback draining error", depth=2))) == 2


def test_hits_have_their_score_as_a_signal(leg):
    hits = leg("draining queues").rankings["bm25"]
    assert all(hit.signals == {"bm25": hit.score} and hit.score > 0 and hit.facts is None for hit in hits)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_only_an_admin_is_told_every_digit_and_all_are_ranked_by_them(leg):
    for_admins, for_others = (leg("draining queues rollback", is_admin=is_admin) for is_admin in (True, False))
    exact = for_admins.rankings["bm25"]
    assert for_others.rankings["bm25"] == exact
    assert round_for_viewer(for_admins).rankings["bm25"] == exact
    told = round_for_viewer(for_others).rankings["bm25"]
    assert [hit.chunk_id for hit in told] == [hit.chunk_id for hit in exact]
    assert [hit.score for hit in told] == [in_two_digits(hit.score) for hit in exact]
    assert [hit.signals for hit in told] == [{"bm25": hit.score} for hit in told]
    assert [hit.score for hit in exact] != [hit.score for hit in told]


def test_each_finds_only_what_is_in_their_scope(library, leg):
    for name in ("alice", "bob", "charlie"):
        seen = set(Document.objects.in_scope(scope_for(library.principal(name))).values_list("pk", flat=True))
        for text in ("rollback", "zanzibar passphrase", "tangerine", '"stolen passphrase"', "zanzibar OR x"):
            found = {hit.chunk_id.document_id for hit in leg(text, name).rankings["bm25"]}
            assert found <= seen
            assert bool(found) == (name == "alice" or (name == "bob" and text == "rollback"))


def test_the_scores_that_bob_sees_do_not_change_with_what_he_may_not_see(library, leg):
    before = {hit.chunk_id: hit.score for hit in leg("rollback", "bob").rankings["bm25"]}
    (library.root / "vault" / "more.md").write_text("# Rollback\n\nrollback\n")
    sync_connection(library.vault)
    follower().rebuild()
    after = {hit.chunk_id: hit.score for hit in leg("rollback", "bob").rankings["bm25"]}
    # The average length is another; how many hold the word does not count.
    assert after == pytest.approx(before, rel=0.1)


def completed(state):
    """Return the state after the pool was read, as if this leg's hits were the pool."""
    stage = Complete(CorecubeConfig().fulltext, active.active_index(active.encoder()))
    return stage(replace(state, hits=state.rankings["bm25"]))


def test_the_index_keeps_what_postgresql_keeps(library, leg):
    """Whatever a filter says of documents and chunks, reading the pool from PostgreSQL leaves nothing out behind it."""
    for number, document in enumerate(Document.objects.order_by("pk")):
        Document.objects.filter(pk=document.pk).update(source_type=("excel", "csv", "pdf")[number % 3])
        Chunk.objects.filter(document_id=document.pk).update(
            hints=[["table"], ["list", "table"], []][number % 3], quality=(0.1, 0.25, 1.0, 0.9)[number % 4]
        )
    follower().rebuild()
    pair = frozenset(Document.objects.order_by("external_id").values_list("pk", flat=True)[:2])
    everything = leg("rollback draining retry_limit crowns queue häuser").rankings["bm25"]
    assert len({hit.chunk_id.document_id for hit in everything}) == Document.objects.count() - 1
    for kept in (
        *(RequestFilter(min_quality=it) for it in (0.05, 0.1, 0.25, 0.9, 0.95)),
        *(RequestFilter(hint=it) for it in ("table", "list", "steps")),
        *(RequestFilter(source_types=frozenset(it)) for it in (("excel",), ("csv", "pdf"), ("docx",))),
        RequestFilter(documents=pair),
        RequestFilter(documents=pair, hint="table", min_quality=0.2, source_types=frozenset({"csv", "excel"})),
    ):
        state = leg("rollback draining retry_limit crowns queue häuser", kept=kept)
        by_index = {hit.chunk_id for hit in state.rankings["bm25"]}
        by_store = completed(replace(state, rankings={"bm25": everything})).hits
        assert by_index == {hit.chunk_id for hit in by_store}, kept


def test_a_stale_index_loses_hits_and_shows_none(library, leg):
    """Deleted documents and those that moved out of scope are in the index still."""
    assert len(titles(leg("draining rollback"))) > 3
    gone = Document.objects.get(external_id="drain.md").pk
    hidden = Document.objects.get(external_id="rollback.md").pk
    Chunk.objects.filter(document_id=gone).delete()
    Chunk.objects.filter(document_id=hidden).update(connection_id=library.vault.pk)
    Document.objects.filter(pk=hidden).update(connection_id=library.vault.pk)
    state = completed(leg("draining rollback", "bob"))
    found = {hit.chunk_id.document_id for hit in state.hits}
    assert {gone, hidden} <= {hit.chunk_id.document_id for hit in state.rankings["bm25"]}
    assert found
    assert not found & {gone, hidden}
    assert "stale_hits" in codes(state)
    assert {drop.chunk_id.document_id for drop in state.drops} == {gone, hidden}
    assert {(drop.reason, drop.detail) for drop in state.drops} == {(DropReason.STALE, "no longer in the store")}


def test_what_a_filter_leaves_out_is_dropped_like_what_is_gone_or_hidden(library, leg):
    state = leg("draining rollback queue", "bob")
    gone, hidden, other = (
        Document.objects.get(external_id=name).pk for name in ("drain.md", "rollback.md", "queues.txt")
    )
    Chunk.objects.filter(document_id=gone).delete()
    Chunk.objects.filter(document_id=hidden).update(connection_id=library.vault.pk)
    Document.objects.filter(pk=hidden).update(connection_id=library.vault.pk)
    kept = frozenset({hit.chunk_id.document_id for hit in state.rankings["bm25"]} - {other})
    state = completed(replace(state, filter=RequestFilter(documents=kept)))
    assert {drop.chunk_id.document_id for drop in state.drops} == {gone, hidden, other}
    assert len({(drop.reason, drop.detail) for drop in state.drops}) == 1


def test_without_an_index_the_leg_says_so_and_gives_none(library, leg, settings):
    (settings.CORECUBE_BM25_DIR / "CURRENT").unlink()
    state = leg("rollback")
    assert (titles(state), codes(state), state.notes[0].degraded) == ([], ["bm25_unavailable"], True)
    settings.CORECUBE_BM25 = False
    assert codes(leg("rollback")) == ["bm25_unavailable"]


def test_full_text_takes_the_place_of_a_missing_index(library, settings):
    (settings.CORECUBE_BM25_DIR / "CURRENT").unlink(missing_ok=True)
    request = SearchRequest(text="rollback limit", preset="helix", mode="bm25")
    state = search(request, principal=library.principal("alice")).state
    assert "bm25_substituted" in state.degraded
    words = search(replace(request, preset="corecube", mode="fulltext"), principal=library.principal("alice")).state
    found = [(hit.chunk_id, hit.score) for hit in state.rankings["bm25"]]
    assert found == [(hit.chunk_id, hit.score) for hit in words.rankings["fulltext"]] != []
    assert {hit.chunk_id for hit in state.hits} == {chunk for chunk, _ in found}


def test_without_time_the_leg_gives_none_and_says_so(leg):
    late = replace(leg("rollback"), rankings={}, notes=(), deadline=Deadline.after(0.0))
    state = Bm25(Bm25Config(), runtime.bm25_reader(), "english")(late)
    assert (titles(state), codes(state)) == ([], ["bm25_timeout"])
