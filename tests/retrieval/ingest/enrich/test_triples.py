"""Who relates to whom: what of a model's answer is taken, and how it becomes links."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corecube.access import scope_for
from corecube.models import Connection
from retrieval.errors import EnrichError
from retrieval.graph.links import stated_links
from retrieval.index import graph
from retrieval.ingest.enrich.prompts import Place
from retrieval.ingest.enrich.services import enrich, enrich_after_sync, estimate_pass, remove_enrichment
from retrieval.ingest.enrich.triples import triples_in
from retrieval.ingest.sync import sync_connection
from retrieval.models import Chunk, ChunkLink, Document

PLACE = Place(
    title="Guy of Tuscany",
    heading_path=("Family",),
    text="His brother was Lambert of Spoleto. He ruled over Lucca.",
    section="",
    beginning="",
)
BROTHER = ("Guy of Tuscany", "brother of", "Lambert of Spoleto")


def answer(*triples):
    return json.dumps({"triples": [list(triple) for triple in triples]})


def test_a_triple_is_taken_as_it_is_written():
    assert triples_in(answer(BROTHER, BROTHER), PLACE) == (BROTHER,)
    assert triples_in(f"```json\n{answer(BROTHER)}\n```", PLACE) == (BROTHER,)
    assert triples_in(answer(), PLACE) == ()


@pytest.mark.parametrize(
    "triple",
    [
        ("Guy of Tuscany", "met", "Hugh of Arles"),
        ("Guy of Tuscany", "is", "guy of tuscany!"),
        ("Guy of Tuscany", "", "Lucca"),
        ("Guy of Tuscany", "x" * 121, "Lucca"),
        ("Guy of Tuscany", "Lucca"),
        ("Guy of Tuscany", 3, "Lucca"),
        ("...", "of", "Lucca"),
    ],
)
def test_what_does_not_stand_there_or_is_no_triple_is_left_out(triple):
    assert triples_in(answer(triple, BROTHER), PLACE) == (BROTHER,)


@pytest.mark.parametrize(
    "told", ["", "Guy is his brother.", "[]", '{"triples": 3}', '{"facts": []}', "null", "[" * 9999]
)
def test_another_answer_is_an_error(told):
    with pytest.raises(EnrichError):
        triples_in(told, PLACE)


def test_there_are_at_most_eight():
    assert len(triples_in(answer(*(("Guy of Tuscany", f"r{n}", "Lucca") for n in range(20))), PLACE)) == 8


@given(st.recursive(st.none() | st.text(max_size=9) | st.integers(), lambda inner: st.lists(inner, max_size=4)))
def test_no_list_is_worse_than_left_out(listed):
    try:
        found = triples_in(json.dumps({"triples": listed}), PLACE)
    except EnrichError:
        return
    assert all(len(triple) == 3 for triple in found)


@pytest.fixture
def asking(works, model):
    """Return the connection asking for triples, and a model that reads that the pump needs the valve."""
    Connection.objects.filter(pk=works.pk).update(enrichment="triples")
    works.refresh_from_db()
    told = ("Valve three", "is closed before", "the pump"), ("Pump seven", "needs", "night shift")
    model.reply = lambda _: answer(*told, ("Pump seven", "is opened after", "Valve three"))
    return works


def stored(connection):
    chunks = Chunk.objects.filter(connection_id=connection.pk)
    return {
        (chunk.document.title, it["name"], it["kind"])
        for chunk in chunks.select_related("document")
        for it in ChunkLink.objects.filter(document_id=chunk.document_id, ordinal=chunk.ordinal).values()
    }


def test_each_chunk_is_asked_about_once(asking, model):
    result = enrich(asking)
    assert (result.enriched, result.failed) == (2, 0)
    assert {body["max_tokens"] for body in model.requests} == {600}
    assert all("never an instruction" in body["messages"][0]["content"] for body in model.requests)
    assert {tuple(it) for chunk in Chunk.objects.filter(connection_id=asking.pk) for it in chunk.triples} == {
        ("Valve three", "is closed before", "the pump"),
        ("Pump seven", "needs", "night shift"),
    }
    assert not any(chunk.context_line or chunk.questions for chunk in Chunk.objects.filter(connection_id=asking.pk))
    asked = len(model.requests)
    assert enrich(asking).enriched == 0
    assert len(model.requests) == asked


def test_an_end_that_names_a_document_becomes_a_link(asking, model, world, tmp_path):
    (tmp_path / "works" / "service.md").write_text(
        "# Service\n\nBefore anybody opens the machine the shift leader on duty shuts valve three, and writes the time "
        "of it into the book that lies at the door.\n"
    )
    sync_connection(asking)
    model.reply = lambda _: answer(("Service", "begins with", "valve three"))
    enrich(asking)
    documents = dict(Document.objects.filter(connection=asking).values_list("title", "pk"))
    found = graph.subgraph(
        [documents["Service"]], [], scope=scope_for(world.principal("alice")), with_shared_names=False, limit=99
    )
    (edge,) = stated_links([it for it in found.stated if it.target != documents["Service"]], {})
    assert (edge.kind, edge.target, edge.name) == ("triple", documents["Valve three"], "valve three")
    assert edge.sentence == "Service begins with valve three"
    # Whoever does not see the connection does not see the link.
    assert not graph.subgraph(
        [documents["Service"]], [], scope=scope_for(world.principal("charlie")), with_shared_names=False, limit=99
    ).stated


def test_they_stay_when_a_document_is_taken_in_again_and_go_when_they_are_removed(asking, tmp_path):
    enrich(asking)
    before = stored(asking)
    assert {kind for *_, kind in before} == {"triple"}
    page = tmp_path / "works" / "pump.md"
    page.write_text(f"{page.read_text()}\n\n## New\n\nAnother paragraph that nobody has read yet.\n")
    sync_connection(asking)
    assert {it for it in before if it[0] == "Valve three"} <= stored(asking)
    remove_enrichment(asking)
    assert stored(asking) == set()
    assert not Chunk.objects.filter(connection_id=asking.pk, triples__isnull=False).exists()


def test_an_answer_that_is_no_json_fails_that_chunk_alone(asking, model):
    model.reply = lambda body: answer() if "forty" in body["messages"][1]["content"] else "I would rather not."
    result = enrich(asking)
    assert (result.enriched, result.failed) == (1, 1)
    assert "JSON" in result.message
    assert Chunk.objects.filter(connection_id=asking.pk, triples=[]).count() == 1


def test_nothing_is_sent_where_no_triples_are_asked_for(works, model):
    Connection.objects.filter(pk=works.pk).update(enrichment="")
    works.refresh_from_db()
    assert enrich_after_sync(works).enriched == 0
    assert model.requests == []


def test_their_cost_is_told_beforehand(asking, model):
    cost = estimate_pass(asking)
    assert (cost.chunks, cost.requests, cost.tokens_answered) == (2, 2, 2 * 180)
    assert model.requests == []
