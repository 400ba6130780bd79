"""Links from names, worked out by hand."""

from math import log2, sqrt
from uuid import UUID

import pytest

from retrieval.engine.types import ChunkId
from retrieval.graph.links import Holder, SeedText, name_links, shared_name_links, unnamed_shared_links
from retrieval.graph.mentions import mentions_of
from retrieval.graph.question import KnownName
from retrieval.graph.spans import number_of

SEED, GUY, HUGH, OTHER = (UUID(int=number) for number in (1, 2, 3, 4))


def seed(text, document=SEED):
    return SeedText(ChunkId(document, 0), text, mentions_of(text))


def test_a_link_keeps_its_sentence_and_weighs_by_how_sure_its_name_is():
    text = "It is old. Lambert was a brother of Guy. He left."
    (link,) = name_links([seed(text)], [KnownName(GUY, "Guy", 0.6)])
    assert (link.target, link.name, link.sentence) == (GUY, "Guy", "Lambert was a brother of Guy.")
    assert link.weight == pytest.approx(0.6)


def test_a_name_of_several_documents_leads_to_each_by_less():
    names = [KnownName(GUY, "Guy", 1.0), KnownName(HUGH, "Guy", 0.9)]
    links = {it.target: it.weight for it in name_links([seed("Then Guy came.")], names)}
    assert links == {GUY: pytest.approx(1 / sqrt(2)), HUGH: pytest.approx(0.9 / sqrt(2))}


def test_a_name_of_more_than_eight_leads_nowhere():
    names = [KnownName(UUID(int=number), "Guy", 1.0) for number in range(10, 19)]
    assert name_links([seed("Then Guy came.")], names) == []
    assert len(name_links([seed("Then Guy came.")], names[1:])) == 8


def test_a_text_does_not_lead_to_itself():
    names = [KnownName(SEED, "Guy", 1.0), KnownName(GUY, "Guy", 1.0)]
    assert name_links([seed("Then Guy came.")], names) == []


def test_the_longer_name_is_meant():
    names = [KnownName(GUY, "Guy", 1.0), KnownName(HUGH, "Guy of Tuscany", 1.0)]
    assert [it.target for it in name_links([seed("Then Guy of Tuscany came.")], names)] == [HUGH]


def test_a_rare_shared_name_links_and_weighs_by_how_rare():
    text = "later Mortimer came."
    holder = Holder(str(OTHER), 3, number_of("mortimer"))
    (link,) = shared_name_links([seed(text)], [holder])
    # Two documents share it: half of 1 / log2(3).
    assert link.weight == pytest.approx(0.5 / log2(3))
    assert (link.target, link.target_chunk) == (OTHER, ChunkId(OTHER, 3))
    assert (link.name, link.sentence) == ("Mortimer", text)


def test_a_phrase_in_more_than_eight_documents_is_no_shared_name():
    holders = [Holder(str(UUID(int=number)), 0, number_of("mortimer")) for number in range(10, 18)]
    assert shared_name_links([seed("later Mortimer came.")], holders) == []
    assert len(shared_name_links([seed("later Mortimer came.")], holders[1:])) == 7


def test_without_holders_not_even_the_seeds_share_a_name():
    assert shared_name_links([seed("later Mortimer came."), seed("so Mortimer went.", OTHER)], []) == []


def test_a_phrase_that_was_not_looked_for_links_not_even_two_seeds():
    seeds = [seed("later Mortimer came to Zanzibar."), seed("so Mortimer left Zanzibar.", OTHER)]
    holders = [Holder(str(SEED), 0, number_of("zanzibar"))]
    assert {link.name for link in shared_name_links(seeds, holders)} == {"Zanzibar"}


def test_a_shared_name_is_placed_where_it_is_said_first():
    text = "later Mortimer came. Then fierce Zanzibar fell, and Mortimer left."
    holders = [Holder(str(OTHER), 3, number_of("mortimer")), Holder(str(GUY), 0, number_of("zanzibar"))]
    links = {it.target: (it.name, it.sentence) for it in shared_name_links([seed(text)], holders)}
    assert links == {
        OTHER: ("Mortimer", "later Mortimer came."),
        GUY: ("Zanzibar", "Then fierce Zanzibar fell, and Mortimer left."),
    }
    assert [it.target for it in unnamed_shared_links([seed(text)], holders)] == list(links)
