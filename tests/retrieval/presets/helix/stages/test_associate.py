"""Following links from all fused hits."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from corecube.access import scope_for
from retrieval.engine.deadline import Deadline
from retrieval.engine.query import read_query
from retrieval.engine.state import SearchState
from retrieval.errors import SearchTimeoutError
from retrieval.graph.links import Edge
from retrieval.index import active, graph
from retrieval.models import Document
from retrieval.presets.helix.stages.associate import Associate, AssociateConfig, both_ways, lifts_of, seeds_in
from retrieval.presets.helix.walk import Step
from retrieval.search import runtime
from retrieval.stages.analyze import Analyze
from retrieval.stages.dense import Dense, DenseConfig
from retrieval.stages.embed import Embed
from retrieval.stages.fulltext import Fulltext, FulltextConfig
from retrieval.stages.fuse import Fuse, FusionConfig
from tests.retrieval.conftest import chunk_id, hit

_PAGES = {
    "guy.md": "# Guy of Tuscany\n\nGuy was a count. His brother was Lambert of Spoleto.\n",
    "lambert.md": "# Lambert of Spoleto\n\nA margrave, dismissed by Berengar of Friuli.\n",
    "berengar.md": "# Berengar of Friuli\n\nCrowned king in the north.\n",
    "castle.md": "# Castle guide\n\nThe walls are old.\n",
    "gazetteer.md": "# Gazetteer of Piers\n\nIt lists " + ", ".join(f"Port Alma{it}" for it in range(12)) + ".\n",
    **{f"port{it}.md": f"# Port Alma{it}\n\nBuilt in year{it} by mason{it}.\n" for it in range(12)},
}


@pytest.fixture
def associate(governed, sync_once):
    for name, text in _PAGES.items():
        (governed.root / "runbooks" / name).write_text(text)
    (governed.root / "vault" / "secret.md").write_text("# Lambert of Spoleto\n\nSecret: he knew Guy of Tuscany.\n")
    sync_once(governed.runbooks, governed.vault)
    tools = runtime.resources(active.encoder())

    def run(question, **config):
        state = SearchState(
            query=read_query(question, characters=500),
            scope=scope_for(governed.principal("bob")),
            deadline=Deadline.after(5.0),
            now=datetime(2026, 6, 1, tzinfo=UTC),
            top_k=10,
        )
        state = Analyze("english")(Embed(tools.encoder)(state))
        state = Fulltext(FulltextConfig(depth=1))(Dense(DenseConfig(depth=1), tools.index)(state))
        state = Fuse(FusionConfig(pool=1))(state)
        return Associate(AssociateConfig(**config), tools.index)(state)

    titles = dict(Document.objects.values_list("pk", "title"))
    run.titles = lambda state: [titles[hit.chunk_id.document_id] for hit in state.hits]
    return run


def codes(state):
    return [note.code for note in state.notes if note.code.startswith("associate")]


def test_links_are_followed_over_two_hops_and_within_the_scope(associate):
    state = associate("Who was Guy of Tuscany?")
    assert associate.titles(state) == ["Guy of Tuscany", "Lambert of Spoleto", "Berengar of Friuli"]
    seed, near, far = (it.signals["graph"] for it in state.hits)
    assert 1 > seed > near > far > 0
    assert [(it.kind, it.name) for it in state.hits[2].lifts] == [("link", "Berengar of Friuli")]
    assert [it.score for it in state.hits[1:]] == [0.0, 0.0]
    assert codes(state) == ["associated"]


def test_one_hop_and_a_full_pool_end_sooner(associate):
    assert associate.titles(associate("Who was Guy of Tuscany?", hops=1))[1:] == ["Lambert of Spoleto"]
    assert associate.titles(associate("Who was Guy of Tuscany?", pool=2))[1:] == ["Lambert of Spoleto"]
    assert len(associate("Who was Guy of Tuscany?", pool=1).hits) == 1


def test_a_graph_beyond_the_row_limit_is_searched_breadth_first_and_says_so(associate):
    state = associate("Gazetteer of Piers lists Port Alma3, Port Alma5", max_rows=10, neighbours=3)
    assert codes(state) == ["associated", "associate_cut"]
    assert associate.titles(state)[0] == "Gazetteer of Piers"
    assert len(state.hits) == 4
    assert {it.signals["graph"] for it in state.hits} == {1.0}


def test_out_of_time_the_pool_stays_with_a_note(associate, monkeypatch):
    def late(*_, **__):
        raise SearchTimeoutError

    monkeypatch.setattr(graph, "subgraph", late)
    state = associate("Who was Guy of Tuscany?")
    assert associate.titles(state) == ["Guy of Tuscany"]
    assert [note.code for note in state.notes if note.degraded] == ["associate_timeout"]


def test_a_seed_weighs_as_much_as_its_hits_together():
    first, second = hit(1, 0.03), hit(2, 0.02)
    other = replace(first, chunk_id=first.chunk_id._replace(ordinal=1), score=0.01)
    seeds = seeds_in((first, second, other))
    assert seeds == {first.chunk_id.document_id: pytest.approx(0.04), second.chunk_id.document_id: 0.02}


def test_the_surest_link_of_a_pair_counts_in_both_directions():
    source, target = chunk_id(1), chunk_id(2).document_id
    edges = [Edge(source, target, "link", "x", 0.4), Edge(source, target, "hyperlink", "y", 0.9)]
    assert both_ways(edges, limit=8) == [Step(source.document_id, target, 0.9), Step(target, source.document_id, 0.9)]
    lifts = lifts_of(edges, {target: 0.26})[target]
    assert [(it.kind, it.amount) for it in lifts] == [("hyperlink", pytest.approx(0.18)), ("link", pytest.approx(0.08))]
