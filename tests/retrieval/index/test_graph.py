"""The graph in the store: it follows every change, a rebuild finds the same, nobody sees beyond the scope."""

from uuid import UUID

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corecube.access import scope_for
from retrieval.graph.spans import key_of, number_of
from retrieval.index import graph
from retrieval.index.graph_writer import fill_graph, forget_graph, graph_status
from retrieval.index.writer import EncodedChunk, StoredDocument, delete_documents, store_documents
from retrieval.models import ChunkLink, ChunkMentions, Document, DocumentName
from retrieval.models.document import document_id
from retrieval.text.document import ChunkDraft
from retrieval.text.quality import quality_of
from tests.profiles import examples


def put(connection, name, title, *texts, links=(), triples=None, uri="", **metadata):
    """Store a document under its name at the source and return its id."""
    row = Document(
        id=document_id(connection.pk, name),
        connection=connection,
        external_id=name,
        title=title,
        uri=uri,
        source_type="text",
        byte_size=1,
        metadata=metadata,
        synced_at=timezone.now(),
    )
    chunks = tuple(
        EncodedChunk(
            ChunkDraft(place, text, (), 1, links=tuple(links), triples=triples),
            content_hash="",
            simhash=0,
            quality=quality_of(text),
            vectors={},
        )
        for place, text in enumerate(texts)
    )
    store_documents([StoredDocument(row, chunks)], text_search_config="simple")
    return row.pk


def everything():
    """Return every row of the graph, in a fixed order."""
    names = DocumentName.objects.values_list("document_id", "key", "connection_id", "name", "kind", "quality")
    mentions = ChunkMentions.objects.values_list("document_id", "ordinal", "connection_id", "keys", "phrases")
    stated = ChunkLink.objects.values_list("document_id", "ordinal", "connection_id", "kind", "key", "name", "sentence")
    return sorted(names), sorted((*row[:3], tuple(row[3]), row[4]) for row in mentions), sorted(stated)


def leads(seed, *, scope, shared=True):
    """Return the documents that a seed's texts lead to, by name and by shared phrase."""
    found = graph.subgraph([seed], [], scope=scope, with_shared_names=shared, limit=1000)
    named = {name.document_id for name in found.names} - {seed}
    return named, {UUID(holder.document) for holder in found.holders} - {seed}


def states(seed, *, scope):
    """Return the documents that a seed's links lead to, with their kind and what a reader sees of them."""
    found = graph.subgraph([seed], [], scope=scope, with_shared_names=False, limit=1000).stated
    return {(it.stated.kind.value, it.target, it.stated.name) for it in found}


@pytest.fixture
def alice(governed):
    return scope_for(governed.principal("alice"))


def test_a_link_is_there_whichever_document_came_first(governed, alice):
    guy = put(governed.runbooks, "guy", "Guy of Tuscany", "He was a count.")
    hugh = put(governed.runbooks, "hugh", "Hugh of Arles", "His brother was Guy of Tuscany.")
    assert leads(hugh, scope=alice)[0] == {guy}
    bertha = put(governed.runbooks, "bertha", "Bertha", "She died.")
    assert leads(guy, scope=alice)[0] == set()
    put(governed.runbooks, "guy", "Guy of Tuscany", "The son of Bertha.")
    assert leads(guy, scope=alice)[0] == {bertha}


def test_a_renamed_document_is_found_by_its_new_name_alone(governed, alice):
    guy = put(governed.runbooks, "guy", "Guy of Tuscany", "He was a count.")
    hugh = put(governed.runbooks, "hugh", "Hugh of Arles", "He met Guy of Tuscany and Lambert of Spoleto.")
    put(governed.runbooks, "guy", "Lambert of Spoleto", "He was a count.")
    assert leads(hugh, scope=alice)[0] == {guy}
    assert graph.names([key_of("Guy of Tuscany")], [], scope=alice).asked == ()


def test_deleting_removes_every_trace(governed, alice):
    guy = put(governed.runbooks, "guy", "Guy of Tuscany", "The brother of Mortimer.", aliases="Guido")
    hugh = put(governed.runbooks, "hugh", "Hugh of Arles", "He met Guy of Tuscany, later Mortimer.")
    assert leads(hugh, scope=alice) == ({guy}, {guy})
    delete_documents([guy])
    assert leads(hugh, scope=alice) == (set(), set())
    assert not DocumentName.objects.filter(document_id=guy).exists()
    assert not ChunkMentions.objects.filter(document_id=guy).exists()


def test_what_an_author_says_it_is_also_called_is_a_name(governed, alice):
    guy = put(governed.runbooks, "guy", "Guy", "A count.", aliases="['Guido', Wido di Toscana]")
    found = graph.names([key_of("guido"), key_of("Wido di Toscana")], [], scope=alice).asked
    assert {(it.document_id, it.text) for it in found} == {(guy, "Guido"), (guy, "Wido di Toscana")}


def test_neither_end_of_a_link_is_out_of_scope(governed):
    # Bob sees the runbooks, and neither the vault nor the ledger.
    bob, alice = (scope_for(governed.principal(name)) for name in ("bob", "alice"))
    seen = put(governed.runbooks, "seen", "Seen Page", "It speaks of Hidden Page, then of Zanzibar.")
    hidden = put(governed.vault, "hidden", "Hidden Page", "It speaks of Zanzibar, then of Seen Page.")
    assert leads(seen, scope=alice) == ({hidden}, {hidden})
    assert leads(seen, scope=bob) == (set(), set())
    assert graph.subgraph([hidden], [], scope=bob, with_shared_names=True, limit=1000).size == 0
    assert graph.names([key_of("Hidden Page")], [hidden], scope=bob) == graph.Names()
    assert graph.hubs([key_of("Zanzibar")], limit=1, scope=bob) == set()
    assert graph.hubs([key_of("Zanzibar")], limit=1, scope=alice) == {"zanzibar"}


def test_what_a_hidden_connection_makes_common_is_no_hub_for_others(governed, bob, alice):
    put(governed.runbooks, "one", "One", "Zanzibar is far.")
    for number in range(30):
        put(governed.vault, f"hidden{number}", f"Hidden {number}", "Zanzibar is hidden.")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE retrieval_chunkmentions")
    assert graph.hubs([key_of("Zanzibar")], limit=5, scope=bob) == set()
    assert graph.hubs([key_of("Zanzibar")], limit=5, scope=alice) == {"zanzibar"}


def test_a_hyperlink_leads_to_its_document_whichever_came_first(governed, alice):
    seed = put(governed.runbooks, "a/start.md", "Start", "Read on.", links=[("Read on", "next.md#top")])
    assert states(seed, scope=alice) == set()
    target = put(governed.runbooks, "a/next.md", "Something else", "Text.")
    assert states(seed, scope=alice) == {("hyperlink", target, "Read on")}
    delete_documents([target])
    assert states(seed, scope=alice) == set()
    moved = put(governed.runbooks, "b/next.md", "Something else", "Text.")
    assert states(seed, scope=alice) == set()
    put(governed.runbooks, "a/start.md", "Start", "Read on.", links=[("Read on", "../b/next.html")])
    assert states(seed, scope=alice) == {("hyperlink", moved, "Read on")}
    delete_documents([seed])
    assert not ChunkLink.objects.filter(document_id=seed).exists()


def test_a_web_address_is_met_in_another_connection(governed, alice):
    seed = put(governed.runbooks, "page", "Page", "See it.", links=[("it", "https://wiki.example.org/display/Pumps")])
    target = put(governed.vault, "4711", "Pumps", "Text.", uri="https://wiki.example.org/display/Pumps/")
    other = put(governed.vault, "4712", "Path", "Text.")
    put(governed.runbooks, "second", "Second", "See it.", links=[("it", "/4712")])
    assert states(seed, scope=alice) == {("hyperlink", target, "it")}
    assert not DocumentName.objects.filter(key=number_of(f"path:{governed.runbooks.pk}:4712"), document_id=other)


def test_neither_end_of_a_stated_link_is_out_of_scope(governed):
    bob, alice = (scope_for(governed.principal(name)) for name in ("bob", "alice"))
    address = "https://wiki.example.org/hidden"
    seen = put(governed.runbooks, "seen", "Seen", "See it.", links=[("it", address)], triples=(("X", "met", "Hidden"),))
    hidden = put(governed.vault, "hidden", "Hidden", "Text.", uri=address, triples=(("Y", "met", "Seen"),))
    assert {it[1] for it in states(seen, scope=alice)} == {hidden}
    assert states(seen, scope=bob) == set()
    assert states(hidden, scope=bob) == set()


def test_a_triple_leads_to_the_documents_that_its_ends_name(governed, alice):
    guy = put(governed.runbooks, "guy", "Guy of Tuscany", "He.", triples=(("Guy of Tuscany", "brother of", "Lambert"),))
    lambert = put(governed.runbooks, "lambert", "Lambert", "He.")
    (found,) = (
        it
        for it in graph.subgraph([guy], [], scope=alice, with_shared_names=False, limit=99).stated
        if it.target == lambert
    )
    assert (found.stated.sentence, found.quality) == ("Guy of Tuscany brother of Lambert", 1.0)


def test_an_address_is_no_name_that_a_question_may_hold(governed, alice):
    page = put(governed.runbooks, "guide/pumps.md", "Pumps", "Text.", uri="https://example.org/guide")
    assert graph.names([], [page], scope=alice).of_found[page] == ("Pumps",)


def test_words_are_counted_in_scope(governed, alice):
    put(governed.runbooks, "one", "One", "An operating room. Another room.")
    put(governed.runbooks, "two", "Two", "The room of January.")
    put(governed.vault, "three", "Three", "Another room.")
    bob = scope_for(governed.principal("bob"))
    counts = graph.word_counts(["room", "january", "zebra", "the"], languages=["simple", "english"], scope=bob)
    assert counts == {"room": 2, "january": 1, "zebra": 0, "the": 1}
    assert graph.word_counts(["room", "the"], languages=["english"], scope=alice) == {"room": 3}


def test_a_name_that_many_documents_share_leads_to_none_of_them(governed, alice):
    guy, hugh = (put(governed.runbooks, it, f"{it} of Tuscany", "He was a count.") for it in ("Guy", "Hugh"))
    for number in range(9):
        put(governed.runbooks, f"intro {number}", "Introduction Page", "Nothing.")
    seed = put(governed.runbooks, "seed", "Seed", "See the Introduction Page, then Guy of Tuscany and Hugh of Tuscany.")
    found = graph.subgraph([seed], [], scope=alice, with_shared_names=True, limit=1000)
    assert {it.document_id for it in found.names} == {guy, hugh}
    assert not found.is_cut
    delete_documents([document_id(governed.runbooks.pk, "intro 0")])
    assert len(graph.subgraph([seed], [], scope=alice, with_shared_names=True, limit=1000).names) == 2 + 8


def test_at_most_so_many_names_and_phrases_are_read(governed, alice):
    for it in ("Guy", "Hugh"):
        put(governed.runbooks, it, f"{it} of Tuscany", "He was a count.")
    seed = put(governed.runbooks, "seed", "Seed", "See Guy of Tuscany and Hugh of Tuscany.")
    cut = graph.subgraph([seed], [], scope=alice, with_shared_names=False, limit=2)
    assert cut.is_cut
    assert cut.size == len(cut.seeds) + len(cut.names) == 2


def test_a_phrase_is_common_above_any_limit_and_its_own_document_does_not_count(governed, alice, monkeypatch):
    # A scope of a million chunks has a limit above the chunks that are searched otherwise.
    monkeypatch.setattr(graph, "_SEARCHED", 2)
    for number in range(5):
        put(governed.runbooks, f"page {number}", f"Page {number}", "The night watch begins, a watch of the night.")
    put(governed.runbooks, "watch", "Night watch", "The night watch begins.")

    def common(limit, phrase="night watch"):
        found = {key_of(phrase): phrase}
        return graph.common_phrases(found, languages=["english"], limit=limit, scope=alice)

    assert common(4) == {"night watch"}
    assert common(5) == set()
    assert common(4, "watch night") == set()
    assert common(4, "the") == {"the"}


_NAMES = ("guy", "hugh", "bertha", "lambert")
_TITLES = st.sampled_from(["Guy of Tuscany", "Hugh (King)", "Bertha, Queen", "Lambert", "A plain sentence of words"])
_TEXTS = st.lists(
    st.sampled_from(["Guy of Tuscany met Hugh.", "nothing", "Bertha and Lambert of Rome", "call scope_for"]),
    min_size=1,
    max_size=3,
)
_STATED = st.fixed_dictionaries(
    {},
    optional={
        "links": st.lists(st.sampled_from([("there", "lambert"), ("up", "../x"), ("web", "https://example.org/a")])),
        "triples": st.lists(st.just(("Guy of Tuscany", "met", "Hugh"))),
        "uri": st.sampled_from(["", "https://example.org/a.html"]),
    },
)
_PUT = st.tuples(st.just("put"), st.sampled_from(_NAMES), _TITLES, _TEXTS, _STATED)
_DELETE = st.tuples(st.just("delete"), st.sampled_from(_NAMES), st.none(), st.none(), st.none())


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.one_of(_PUT, _DELETE), max_size=12))
def test_after_any_changes_a_rebuild_finds_the_same(governed, changes):
    connection = governed.runbooks
    delete_documents([document_id(connection.pk, name) for name in _NAMES])
    for kind, name, title, texts, stated in changes:
        if kind == "put":
            put(connection, name, title, *texts, **stated)
        else:
            delete_documents([document_id(connection.pk, name)])
    kept = everything()
    forget_graph(connection.pk)
    assert everything() == ([], [], [])
    fill_graph(connection.pk)
    assert everything() == kept
    assert fill_graph(connection.pk) == 0


def test_a_killed_build_is_taken_up_again(governed, monkeypatch):
    for number in range(3):
        put(governed.runbooks, f"page {number}", f"Page Number {number}", "Some Text.")
    kept = everything()
    forget_graph(governed.runbooks.pk)
    monkeypatch.setattr("retrieval.index.graph_writer._BATCH_DOCUMENTS", 1)
    assert fill_graph(governed.runbooks.pk) == 3
    ChunkMentions.objects.filter(document_id=kept[1][0][0]).delete()
    assert fill_graph(governed.runbooks.pk) == 1
    assert everything() == kept


def test_the_command_shows_and_builds(world, capsys):
    call_command("graph")
    chunks = graph_status(world.runbooks.pk).chunks
    assert f"runbooks: {chunks} of {chunks} chunks read" in capsys.readouterr().out
    call_command("graph", "build", "--connection", "runbooks", "--anew")
    assert "runbooks: 2 documents read." in capsys.readouterr().out
    status = graph_status(world.runbooks.pk)
    assert status.read == status.chunks > 0


def test_keys_are_numbers_that_the_store_holds(governed, alice):
    guy = put(governed.runbooks, "guy", "Guy of Tuscany", "He was a count.")
    assert DocumentName.objects.get(document_id=guy, kind="title").key == number_of("guy of tuscany")
