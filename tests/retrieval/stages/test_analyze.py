"""Reading a query: its misspelled words."""

from dataclasses import replace

import numpy as np
import pytest

from corecube.access import scope_for
from retrieval.engine.query import read_query
from retrieval.engine.types import Correction, QueryTerms, Term
from retrieval.engine.words import stemmer
from retrieval.errors import EncoderError
from retrieval.index.lexemes import likely_corrections, possible_corrections
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from retrieval.stages.analyze import Analyze, Corrector
from retrieval.stages.embed import Embed
from tests.fakes import HashEncoder


class BrokenEncoder(HashEncoder):
    def encode_query(self, text):
        raise EncoderError(text)


#: Common words are one token, rare ones two, and misspelled ones three.
TOKENS = {
    "password": 1,
    "hammer": 1,
    "wonderful": 1,
    "lathe": 2,
    "girnder": 2,
    "grinder": 2,
    "grindr": 2,
    "zanzibar": 2,
    "dividend": 2,
    "divided": 1,
    "volunteer": 1,
}


def count_tokens(texts):
    return [TOKENS.get(text, 3) for text in texts]


def terms_of(word, chunks):
    return QueryTerms((Term(stemmer("english")(word), chunks, 1.0),), corpus_size=100)


@pytest.mark.parametrize(
    ("word", "counts", "expected"),
    [
        ("pasword", {"password": 4}, ["password"]),
        ("hamer", {}, []),
        ("hamer", {"hammer": 1}, ["hammer"]),
        # As many tokens are enough for two letters that are swapped, and one token less for one left out.
        ("girnder", {"grinder": 2}, ["grinder"]),
        ("grindr", {"grinder": 2}, []),
        ("grinde", {"grinder": 2}, ["grinder"]),
        # Another letter needs two tokens less.
        ("lathe", {"lath": 3, "latte": 5}, []),
        ("dividend", {"divid": 3}, []),
        ("vilunteer", {"volunt": 3}, ["volunteer"]),
        # The most common words come first, wherever they occur.
        ("whcih", {"whichi": 9}, ["which"]),
        # One token: as it is meant.
        ("hammer", {"hamper": 9}, []),
    ],
)
def test_a_word_that_occurs_nowhere_is_the_likeliest_one_near_it(word, counts, expected):
    unknown = terms_of(word, 0)
    near = possible_corrections(word, unknown, count_tokens)
    assert [it.meant for it in likely_corrections(near, unknown, counts, count_tokens)] == expected


def test_common_words_do_not_use_up_what_is_compared():
    text = "hammer password dividend wonderful volunteer divided pasword"
    terms = QueryTerms(tuple(Term(stemmer("english")(word), 0, 1.0) for word in text.split()), corpus_size=100)
    assert {"pasword", "dividend"} == {it.typed for it in possible_corrections(text, terms, count_tokens)}


def test_a_word_that_occurs_stays():
    assert possible_corrections("pasword", terms_of("pasword", 1), count_tokens) == ()


@pytest.fixture
def analyzed(world, state):
    def run(name, text, *, corrector):
        asked = replace(state, query=read_query(text, characters=500), scope=scope_for(world.principal(name)))
        return Analyze("english", corrector=corrector)(Embed(HashEncoder())(asked))

    return run


def test_the_corrected_query_is_searched_for_and_embedded_and_the_trace_says_so(analyzed):
    state = analyzed("alice", "rollback zanzbar", corrector=Corrector("hash", count_tokens, Embed(HashEncoder())))
    assert state.terms.corrections == (Correction("zanzbar", "zanzibar"),)
    assert {term.lexeme for term in state.terms.terms} == {"rollback", "zanzibar"}
    assert (state.query.text, state.query.for_models) == ("rollback zanzbar", "rollback zanzibar")
    assert np.array_equal(state.vector, HashEncoder().encode_query("rollback zanzibar"))
    told = {note.code: note.text for note in state.notes}["query_corrected"]
    assert told == "Searched for “zanzibar” instead of “zanzbar”: nothing that was searched contains what was typed."


def test_a_stem_that_occurs_is_no_word(analyzed):
    """ "passphrased" has the stem of "passphrase", which is written in a chunk."""
    assert analyzed("alice", "passphrsaed", corrector=Corrector("hash", count_tokens)).terms.corrections == ()
    assert analyzed("alice", "passphrsae", corrector=Corrector("hash", count_tokens)).terms.corrections


def test_without_a_vector_of_what_was_meant_only_words_are_searched(analyzed):
    state = analyzed("alice", "rollback zanzbar", corrector=Corrector("hash", count_tokens, Embed(BrokenEncoder())))
    assert state.vector is None
    assert {"embed_failed", "query_corrected"} <= {note.code for note in state.notes}


def test_a_word_that_the_reader_may_not_see_corrects_nothing(analyzed):
    state = analyzed("bob", "rollback zanzbar", corrector=Corrector("hash", count_tokens))
    assert state.terms.corrections == ()
    assert state.query.for_models == "rollback zanzbar"


@pytest.mark.parametrize(
    ("text", "model"), [('"rollback" zanzbar', "hash"), ("wann ist die zanzbar fertig", "bge-small-en-v1.5")]
)
def test_search_syntax_and_languages_that_the_model_does_not_know_are_not_corrected(analyzed, text, model):
    assert analyzed("alice", text, corrector=Corrector(model, count_tokens)).terms.corrections == ()


def test_without_a_corrector_words_stay(analyzed):
    assert analyzed("alice", "zanzbar", corrector=None).terms.corrections == ()


@pytest.mark.parametrize("preset", ["corecube", "helix", "consolidated", "contextpack"])
def test_every_preset_finds_what_was_meant(world, monkeypatch, preset):
    monkeypatch.setattr(HashEncoder, "count_tokens", lambda _, texts: count_tokens(texts))
    outcome = search(SearchRequest(text="the zanzbar", preset=preset), principal=world.principal("alice"))
    assert "zanzibar" in outcome.hits[0].chunk.text
    assert "query_corrected" in {note.code for span in outcome.trace for note in span.notes}
