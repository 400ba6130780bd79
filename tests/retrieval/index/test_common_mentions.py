"""Names that stand in too many chunks lead nowhere, and what is out of scope has no part in what is too many."""

from dataclasses import replace

import pytest
from django.db import connection as database
from django.test.utils import CaptureQueriesContext

from corecube.access import scope_for
from retrieval.graph.spans import key_of, number_of
from retrieval.index import graph, graph_writer
from retrieval.index.graph_writer import count_common, fill_graph, forget_graph
from retrieval.index.writer import delete_all_documents, delete_documents, refresh_statistics
from retrieval.ingest.completion import update_derived
from retrieval.ingest.services import stored_counts
from retrieval.ingest.sync import sync_connection
from retrieval.models import CommonMention
from retrieval.models.document import document_id
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from tests.retrieval.index.test_graph import leads, put

_ZANZIBAR = number_of(key_of("Zanzibar"))


def counted():
    """Return the counts of the one name that these tests are about, by connection."""
    return dict(CommonMention.objects.filter(key=_ZANZIBAR).values_list("connection_id", "chunks"))


def speak_of_it(connection, count):
    """Store so many documents of one chunk that speak of the name, and let the planner know."""
    ids = [put(connection, f"said {it}", f"Said {it}", "He went to Zanzibar.") for it in range(count)]
    count_common(connection.pk)
    refresh_statistics()
    graph.forget_samples()
    return ids


@pytest.fixture(autouse=True)
def from_three_on(monkeypatch):
    """Count what stands in three chunks of a connection, instead of 200."""
    monkeypatch.setattr(graph_writer, "_MIN_COMMON", 3)


@pytest.fixture
def at_most_five(monkeypatch):
    """Follow no name that stands in more than five chunks, instead of 2,000."""
    monkeypatch.setattr(graph, "_COMMON", 5)


@pytest.fixture
def bob(governed):
    return scope_for(governed.principal("bob"))


@pytest.fixture
def alice(governed):
    return scope_for(governed.principal("alice"))


def test_only_what_stands_in_many_chunks_of_a_connection_is_kept(governed):
    speak_of_it(governed.runbooks, 4)
    put(governed.runbooks, "rare", "Rare", "He went to Samarkand, then to Samarkand.")
    count_common(governed.runbooks.pk)
    assert counted() == {governed.runbooks.pk: 4}
    assert not CommonMention.objects.filter(key=number_of(key_of("Samarkand"))).exists()


def test_counting_again_follows_what_came_and_went(governed):
    ids = speak_of_it(governed.runbooks, 4)
    speak_of_it(governed.vault, 3)
    speak_of_it(governed.runbooks, 6)
    assert counted() == {governed.runbooks.pk: 6, governed.vault.pk: 3}
    delete_documents([*ids, document_id(governed.runbooks.pk, "said 4")])
    count_common(governed.runbooks.pk)
    assert counted() == {governed.vault.pk: 3}


def test_counts_go_with_their_documents_and_come_back_with_a_rebuild(governed):
    speak_of_it(governed.runbooks, 4)
    forget_graph(governed.runbooks.pk)
    assert counted() == {}
    fill_graph(governed.runbooks.pk)
    count_common(governed.runbooks.pk)
    assert counted() == {governed.runbooks.pk: 4}
    delete_all_documents(governed.runbooks)
    assert counted() == {}


@pytest.fixture
def forty(governed):
    """An up-to-date connection of forty chunks more, which all speak of the name; how many there are."""
    speak_of_it(governed.runbooks, 40)
    update_derived(governed.runbooks)
    assert counted() == {governed.runbooks.pk: 40}
    return stored_counts(governed.runbooks)[1]


def counts_in(queries):
    return sum("INSERT INTO retrieval_commonmention" in query["sql"] for query in queries)


def test_a_connection_is_counted_anew_when_a_share_of_it_changed(governed, forty):
    assert forty == 40
    for more, known in ((1, 40), (2, 40), (3, 43)):
        put(governed.runbooks, f"more {more}", "More", "He went to Zanzibar.")
        with CaptureQueriesContext(database) as queries:
            update_derived(governed.runbooks)
        # 5 % of 42 chunks are 2.1, and of 43 2.15.
        assert counted() == {governed.runbooks.pk: known}
        assert counts_in(queries) == (more == 3)


def test_what_goes_counts_as_what_comes(governed, forty):
    delete_documents([document_id(governed.runbooks.pk, "said 0")])
    update_derived(governed.runbooks)
    assert counted() == {governed.runbooks.pk: 40}
    put(governed.runbooks, "silent", "Silent", "He stayed.")
    update_derived(governed.runbooks)
    # As many as there were, and 5 % of them changed.
    assert stored_counts(governed.runbooks)[1] == forty == 40
    assert counted() == {governed.runbooks.pk: 39}


def test_what_was_read_for_names_just_now_is_counted_once(governed, forty):
    forget_graph(governed.runbooks.pk)
    for more in range(5):
        put(governed.runbooks, f"more {more}", "More", "He went to Zanzibar.")
    with CaptureQueriesContext(database) as queries:
        update_derived(governed.runbooks)
    assert counts_in(queries) == 1
    assert counted() == {governed.runbooks.pk: 45}


@pytest.mark.usefixtures("at_most_five")
def test_a_name_that_is_common_in_scope_is_not_followed(governed, bob):
    first, *others = speak_of_it(governed.runbooks, 5)
    assert leads(first, scope=bob)[1] == set(others)
    speak_of_it(governed.runbooks, 6)
    assert leads(first, scope=bob)[1] == set()


@pytest.mark.usefixtures("at_most_five")
def test_what_is_hidden_makes_no_name_common_for_others(governed, bob, alice):
    first, *others = speak_of_it(governed.runbooks, 3)
    before = graph.subgraph([first], [], scope=bob, with_shared_names=True, limit=1000)
    speak_of_it(governed.vault, 3)
    # Three and three: common for whoever sees both, and for nobody else.
    assert graph.subgraph([first], [], scope=bob, with_shared_names=True, limit=1000) == before
    assert leads(first, scope=bob)[1] == set(others)
    assert leads(first, scope=alice)[1] == set()
    speak_of_it(governed.vault, 30)
    assert graph.subgraph([first], [], scope=bob, with_shared_names=True, limit=1000) == before


def test_hubs_count_on_from_what_is_known_to_be_common(governed, bob, alice):
    speak_of_it(governed.runbooks, 4)
    speak_of_it(governed.vault, 9)
    assert graph.hubs(["zanzibar"], limit=3, scope=bob) == {"zanzibar"}
    assert graph.hubs(["zanzibar"], limit=4, scope=bob) == set()
    assert graph.hubs(["zanzibar"], limit=12, scope=alice) == {"zanzibar"}
    assert graph.hubs(["zanzibar"], limit=13, scope=alice) == set()


@pytest.mark.usefixtures("at_most_five")
def test_hidden_chunks_change_nothing_of_a_search(governed):
    runbooks, vault = governed.root / "runbooks", governed.root / "vault"
    (runbooks / "guy.md").write_text("# Guy of Tuscany\n\nGuy was a count. He came from Provence.\n")
    (runbooks / "river.md").write_text("# River notes\n\nFerries leave from Provence at dawn.\n")
    sync_connection(governed.runbooks)
    before = found(governed, "bob")
    assert ("shared_name", "Provence") in {(lift.kind, lift.name) for hit in before for lift in hit.lifts}
    for number in range(7):
        (vault / f"{number}.md").write_text(f"# Secret {number}\n\nThey hid number {number} in Provence.\n")
    sync_connection(governed.vault)
    count_common(governed.vault.pk)
    refresh_statistics()
    assert found(governed, "bob") == before
    # What is common for Alice leads her nowhere.
    assert "Provence" not in {lift.name for hit in found(governed, "alice") for lift in hit.lifts}


def found(world, name):
    """Return what a question that names a page finds, as if all were read at one moment."""
    request = SearchRequest(text="Where did Guy of Tuscany come from?", preset="helix", top_k=100)
    hits = search(request, principal=world.principal(name)).hits
    return [replace(hit, score=0.0, signals=_without_time(hit.signals), contributions={}) for hit in hits]


def _without_time(signals):
    return {name: value for name, value in signals.items() if name != "recency"}
