"""Links that a text states: which ends they have, and what they weigh."""

from math import sqrt
from uuid import UUID

import pytest

from retrieval.engine.types import ChunkId
from retrieval.graph.addresses import Place
from retrieval.graph.links import Meeting, Stated, StatedKind, stated_by_links, stated_by_triples, stated_links
from retrieval.graph.spans import number_of

A, B, C = (UUID(int=number) for number in (1, 2, 3))
CHUNK = ChunkId(A, 0)
PLACE = Place(1, "a.md", "")


def meeting(target, name="the guide", *, kind=StatedKind.HYPERLINK, key=5, sentence="", quality=1.0):
    return Meeting(CHUNK, target, Stated(kind, key, name, sentence), quality)


def test_each_end_is_kept_once_and_none_of_the_document_itself():
    found = stated_by_links([["b", "b.md"], ["B again", "b.html#x"], ["me", "a.md"], ["mail", "mailto:x@y"]], PLACE)
    assert found == (Stated(StatedKind.HYPERLINK, number_of("path:1:b"), "b"),)


def test_a_page_of_links_is_bounded():
    assert len(stated_by_links([[str(n), f"{n}.md"] for n in range(500)], PLACE)) == 64


def test_both_ends_of_a_triple_may_be_names():
    found = stated_by_triples([("Guy of Tuscany", "brother of", "Lambert")])
    assert [(it.name, it.sentence) for it in found] == [
        ("Lambert", "Guy of Tuscany brother of Lambert"),
        ("Guy of Tuscany", "Guy of Tuscany brother of Lambert"),
    ]
    assert found[1].key == number_of("guy of tuscany")


def test_a_link_counts_by_how_many_documents_it_may_mean():
    (edge,) = stated_links([meeting(B)], {CHUNK: "First. See the guide for more. Last."})
    assert (edge.target, edge.weight, edge.kind, edge.name) == (B, 1.0, "hyperlink", "the guide")
    assert edge.sentence == "See the guide for more."
    assert [it.weight for it in stated_links([meeting(B), meeting(C)], {})] == [pytest.approx(1 / sqrt(2))] * 2
    assert stated_links([meeting(UUID(int=n)) for n in range(10, 19)], {}) == []


def test_a_name_that_is_the_sources_own_leads_nowhere():
    assert stated_links([meeting(A), meeting(B)], {}) == []


def test_a_triple_carries_what_it_says():
    (edge,) = stated_links([meeting(B, "Lambert", kind=StatedKind.TRIPLE, sentence="Guy met Lambert", quality=0.6)], {})
    assert (edge.kind, edge.sentence, edge.weight) == ("triple", "Guy met Lambert", 0.6)


def test_of_several_links_to_one_document_the_surest_counts():
    twice = [meeting(B, "near", key=5, quality=0.5), meeting(B, "sure", key=6)]
    assert [it.name for it in stated_links(twice, {})] == ["sure"]
