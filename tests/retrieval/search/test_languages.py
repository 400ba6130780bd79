"""Connections in several languages: each is stemmed as its own, and a query is read in all of the scope's."""

import pytest
import snowballstemmer
from django.core.exceptions import ValidationError
from django.db import connection as database

from corecube.access import Principal, scope_for
from corecube.models import Connection
from corecube.models.access import LANGUAGE_CHOICES
from explorer.pages.explorer.page import hit_rows
from retrieval.engine.query import read_query
from retrieval.index import store
from retrieval.ingest.sync import sync_connection
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from tests.kept_rows import same_row


@pytest.fixture
def handbook(world, sync_once):
    """Return a German connection that Bob may see."""
    folder = world.root / "handbuch"
    folder.mkdir()
    (folder / "urlaub.md").write_text("# Urlaub\n\nDie Häuser der Firma schließen im Juli. Rollbacks ruhen dann.\n")
    (folder / "kantine.md").write_text("# Kantine\n\nDas Haus bietet täglich zwei Gerichte.\n")
    connection = same_row(
        Connection.objects,
        "handbuch",
        slug="handbuch",
        name="Handbuch",
        kind="folder",
        config={"path": str(folder)},
        compartment=world.runbooks.compartment,
        language="german",
    )
    sync_once(connection)
    return connection


def analyzed(world, text, languages=("english", "german")):
    return store.analyze(read_query(text, characters=500), scope=scope_for(world.principal("bob")), languages=languages)


def found(world, text):
    outcome = search(SearchRequest(text=text), principal=Principal(world.bob))
    ranking = outcome.state.rankings["fulltext"]
    by_id = {hit.chunk_id: hit.chunk.title for hit in outcome.hits}
    return outcome, [by_id[hit.chunk_id] for hit in ranking]


def test_each_connection_is_searched_in_its_own_language(world, handbook):
    # "Häuser" is the plural of "Haus" in German alone, "draining" a form of "drain" in English alone.
    assert set(found(world, "Häuser")[1]) == {"Urlaub", "Kantine"}
    assert set(found(world, "draining")[1]) == {"Queues", "Rolling back"}
    assert found(world, "Gericht")[1] == ["Kantine"]


def test_the_terms_of_all_languages_are_united(world, handbook):
    terms = analyzed(world, "draining Häuser").terms
    assert [(term.lexeme, term.document_frequency, term.place) for term in terms] == [("drain", 2, 1), ("haus", 2, 2)]


def test_a_word_that_stands_nowhere_is_one_term(world, handbook):
    # English and German each make another lexeme of it.
    assert len(analyzed(world, "zanzibaring").terms) == 1


@pytest.mark.parametrize(
    ("question", "lexemes"),
    [
        # Stop words of German, to which English gives lexemes.
        ("Wie viele Häuser hat die Firma?", {"viel", "haus", "firma"}),
        ("Gibt es das Haus?", {"gibt", "haus"}),
        ("How many queues are there?", {"mani", "queue"}),
        ("Was ist das?", set()),
    ],
)
def test_stop_words_of_the_question_s_language_are_no_terms(world, handbook, question, lexemes):
    assert {term.lexeme for term in analyzed(world, question).terms} == lexemes


def test_a_word_in_several_forms_is_no_stop_word(world, handbook):
    # German has one lexeme for both words, English two.
    assert [term.lexeme for term in analyzed(world, "Haus und Häuser").terms] == ["haus"]


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("Wie viele Häuser hat die Firma?", "german"),
        ("How many queues?", "english"),
        ("Häuser", "german"),
        ("xy", "english"),
    ],
)
def test_a_query_is_taken_to_be_in_one_of_the_languages(world, handbook, question, language):
    assert analyzed(world, question).language == language


def test_compounds_are_found_by_their_parts_and_parts_in_compounds(world, handbook, sync_once):
    folder = world.root / "handbuch"
    (folder / "zuschlag.md").write_text(
        "# Vergütung\n\nDer Überstundenzuschlag beträgt 25 Prozent. Überstunden sind zu melden.\n"
    )
    sync_once(handbook)
    apart = analyzed(world, "Wie hoch ist der Zuschlag für Überstunden?")
    assert {"uberstund", "uberstundenzuschlag"} <= {term.lexeme for term in apart.terms}
    assert "zuschlag" not in {term.lexeme for term in apart.terms}
    assert apart.compounds == {"uberstundenzuschlag"}
    together = analyzed(world, "Wie sind die Hausgerichte?")
    assert {(term.lexeme, term.place) for term in together.terms if term.lexeme in together.compounds} == {
        ("haus", 4),
        ("gericht", 4),
    }
    # One part alone says too little.
    assert [term.lexeme for term in analyzed(world, "Wie ist die Hauszeitung?").terms] == ["hauszeit"]
    # What a phrase demands stays as it is written.
    assert not analyzed(world, '"Hausgerichte" im Juli').compounds


def test_each_language_demands_its_own_lexemes(world, handbook):
    demanded = analyzed(world, "die Häuser").all_terms
    # "die" is a word in English and none in German.
    assert demanded == "('die' & 'häuser') | ('haus')"
    assert analyzed(world, 'Häuser -"draining"').all_terms == "('haus' & !'draining') | ('häuser' & !'drain')"


def test_one_language_is_read_as_if_there_were_no_others(world):
    assert analyzed(world, "rolling back", ["english"]).all_terms == "'back' & 'roll'"


def test_a_scope_without_connections_is_read_in_the_installation_s_language(world):
    outcome = search(SearchRequest(text="draining"), principal=Principal(world.charlie))
    assert [term.lexeme for term in outcome.state.terms.terms] == ["drain"]


def test_a_changed_language_reads_the_documents_again(world, handbook):
    assert sync_connection(handbook).unchanged == 2
    handbook.language = "simple"
    handbook.save()
    again = sync_connection(handbook)
    assert (again.changed, again.unchanged) == (2, 0)
    assert [term.lexeme for term in analyzed(world, "Häuser", ["simple"]).terms] == ["häuser"]
    assert analyzed(world, "Häuser", ["simple"]).terms[0].document_frequency == 1


def test_words_are_marked_by_the_language_of_their_connection(world, handbook):
    outcome, _ = found(world, "Haus")
    rows = hit_rows(outcome)
    marked = {"".join(it.text for it in row["title"]): [it.text for it in row["snippet"] if it.matched] for row in rows}
    assert marked == {"Kantine": ["Haus"], "Urlaub": ["Häuser"], "Queues": [], "Rolling back": []}


def test_every_language_comes_with_the_server_and_has_a_stemmer(db):
    with database.cursor() as cursor:
        cursor.execute("SELECT cfgname FROM pg_ts_config")
        known = {name for (name,) in cursor.fetchall()}
    languages = {language for language, _ in LANGUAGE_CHOICES} - {""}
    assert languages <= known
    assert languages - {"simple"} <= set(snowballstemmer.algorithms())


def test_a_language_that_does_not_exist_is_refused(world):
    world.runbooks.language = "klingon"
    with pytest.raises(ValidationError, match="klingon"):
        world.runbooks.full_clean()
