"""What is out of scope changes nothing of what a leg returns, scores, counts or says."""

from datetime import UTC, datetime

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corecube.access import scope_for
from corecube.models import Connection
from retrieval.engine.deadline import Deadline
from retrieval.engine.query import read_query
from retrieval.engine.state import SearchState
from retrieval.index import active
from retrieval.ingest.sync import sync_connection
from retrieval.models import Document
from retrieval.search import runtime
from retrieval.stages.analyze import Analyze
from retrieval.stages.complete import Complete
from retrieval.stages.dense import Dense, DenseConfig
from retrieval.stages.embed import Embed
from retrieval.stages.fulltext import Fulltext, FulltextConfig
from tests.profiles import examples

_WORDS = ("rollback", "queue", "march", "staging", "passphrase")
_TEXTS = st.lists(st.lists(st.sampled_from(_WORDS), min_size=1, max_size=6).map(" ".join), min_size=1, max_size=5)
_QUERIES = st.sampled_from(
    [
        "rollback",
        "rollback queue",
        "march passphrase zanzibar",
        '"rollback queue" march',
        "rollback -queue",
        "march OR queue",
    ]
)
_CONFIGS = st.builds(
    FulltextConfig,
    relax_below=st.sampled_from([1, 3, 100]),
    # From 1 on almost every match is too common.
    max_matches=st.sampled_from([1, 2, 1000]),
)


@pytest.fixture
def hidden(world):
    """Return a connection of each compartment that Bob cannot see."""
    return [world.vault, world.ledger]


def write(connection, root, texts):
    folder = root / connection.slug
    for place, text in enumerate(texts):
        (folder / f"{place}.md").write_text(f"# {text.split()[0]}\n\n{text} {place}\n")
    sync_connection(connection)


def everything(bob, query, fulltext, *, exact_below):
    """Return all that the first stages find out for Bob."""
    tools = runtime.resources(active.encoder())
    state = SearchState(
        query=read_query(query, characters=500),
        scope=scope_for(bob),
        deadline=Deadline.after(5.0),
        now=datetime(2026, 6, 1, tzinfo=UTC),
        top_k=10,
    )
    for stage in (
        Analyze(tools.text_search_config),
        Embed(tools.encoder),
        Dense(DenseConfig(exact_below=exact_below), tools.index),
        Fulltext(fulltext),
    ):
        state = stage(state)
    hits = tuple(hit for leg in sorted(state.rankings) for hit in state.rankings[leg])
    completed = Complete(fulltext, tools.index)(SearchState(**fields(state) | {"hits": hits})).hits
    return state.terms, state.rankings, state.notes, completed


def fields(state):
    return {name: getattr(state, name) for name in SearchState.__dataclass_fields__}


@settings(max_examples=examples(12), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(visible=_TEXTS, secret=_TEXTS, search=st.tuples(_QUERIES, _CONFIGS), exact_below=st.sampled_from([0, 20_000]))
def test_hidden_documents_change_nothing(world, hidden, visible, secret, search, exact_below):
    query, fulltext = search
    bob = world.principal("bob")
    with transaction.atomic():
        write(world.runbooks, world.root, visible)
        before = everything(bob, query, fulltext, exact_below=exact_below)
        for connection in hidden:
            write(connection, world.root, secret)
        after = everything(bob, query, fulltext, exact_below=exact_below)
        own = set(Document.objects.filter(connection=world.runbooks).values_list("pk", flat=True))
        transaction.set_rollback(True)
    assert after == before
    _, rankings, _, completed = after
    assert {hit.chunk_id.document_id for ranking in (*rankings.values(), completed) for hit in ranking} <= own


def test_a_leg_finds_what_is_hidden_for_those_who_may_see_it(world):
    terms, rankings, *_ = everything(world.principal("alice"), "zanzibar", FulltextConfig(), exact_below=0)
    vault = set(Document.objects.filter(connection=world.vault).values_list("pk", flat=True))
    assert terms.terms[0].document_frequency == 1
    assert {hit.chunk_id.document_id for hit in rankings["fulltext"]} == vault


def test_a_language_out_of_scope_does_not_read_the_query(world):
    bob = world.principal("bob")
    before = everything(bob, "rollbacks in March", FulltextConfig(), exact_below=0)
    Connection.objects.filter(pk=world.ledger.pk).update(language="german")
    assert everything(bob, "rollbacks in March", FulltextConfig(), exact_below=0) == before
