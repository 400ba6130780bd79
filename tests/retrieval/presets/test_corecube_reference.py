"""`corecube@reference` says what its document says: numbers, formulas, and the order of the stages."""

from itertools import pairwise

import pytest
from django.db import connection

from corecube.access import scope_for
from corecube.models import Connection
from retrieval.models import Document
from retrieval.presets.catalog import PRESETS
from retrieval.search import runtime
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from retrieval.text.document import CHUNK_PROFILES

pytestmark = pytest.mark.usefixtures("unhurried")

REFERENCE = PRESETS["corecube@reference"]
#: From the document "Retrieval Pipeline": heading, setting, number. Field weights: the defaults of PostgreSQL.
NUMBERS = [
    ("Query processing", "query.retrieval_characters", 500),
    ("Hybrid search", "fulltext.cover_density", 1),
    ("Hybrid search", "fulltext.weight_title", 1.0),
    ("Hybrid search", "fulltext.weight_heading", 0.4),
    ("Hybrid search", "fulltext.weight_text", 0.2),
    ("Hybrid search", "dense.exact_below", 0),
    ("Hybrid search", "fusion.rank_constant", 60),
    ("Ranking and filtering", "quality.minimum", 0.3),
    ("Ranking and filtering", "rerank.candidates", 30),
    ("Hybrid ranking weights", "blend.dense", 0.6),
    ("Hybrid ranking weights", "blend.evidence_shift", 0),
    ("Hybrid ranking weights", "blend.min_cosine_span", 0),
    ("Hybrid ranking weights", "blend.fulltext", 0.3),
    ("Hybrid ranking weights", "blend.freshness", 0.1),
    ("Hybrid ranking weights", "ties.tolerance", 0.01),
    ("Context assembly", "assemble.heading_path", 0),
]
FILTERS = ["freshness", "quality", "access", "blend", "rerank", "ties"]


@pytest.fixture
def find(world):
    return lambda text, name="bob", **more: search(
        SearchRequest(text=text, preset=REFERENCE.name, **more), principal=world.principal(name)
    )


def test_every_number_is_the_documents():
    lines = [(it.section, name, value) for it in REFERENCE.lines for name, value in it.values.items()]
    assert lines == NUMBERS
    values = REFERENCE.defaults.values()
    assert {name: values[name] for _, name, _ in NUMBERS} == {name: value for _, name, value in NUMBERS}
    assert REFERENCE.defaults.default_top_k == 10
    sizes = CHUNK_PROFILES["default"]
    assert (sizes.target, sizes.limit, sizes.overlap) == (512, 1024, 50)


def test_the_filters_run_in_the_documents_order(world):
    names = [stage.name for stage in REFERENCE.build(REFERENCE.defaults, runtime.resources()).stages]
    assert names[:5] == ["analyze", "embed", "legs", "fuse", "complete"]
    assert names[5:11] == FILTERS
    assert names[11:] == ["floor", "dedupe", "assemble", "answerability"]


#: What PostgreSQL itself says of documents in scope; the fields are weighted here anew.
BY_POSTGRES = """
SELECT id, title, ts_rank_cd(search, websearch_to_tsquery('english', %(text)s)) AS score
FROM (
    SELECT
        chunk.document_id AS id, document.title AS title,
        setweight(to_tsvector('english', document.title), 'A')
        || setweight(to_tsvector('english', array_to_string(chunk.heading_path, ' ')), 'B')
        || setweight(to_tsvector('english', chunk.text), 'C') AS search
    FROM retrieval_chunk AS chunk JOIN retrieval_document AS document ON document.id = chunk.document_id
    WHERE chunk.connection_id = ANY(%(scope)s)
) AS chunks
WHERE search @@ websearch_to_tsquery('english', %(text)s)
ORDER BY score DESC, id
"""


@pytest.mark.parametrize(
    "text", ["rollback staging", "staging queue", "rollback or passphrase", '"roll back" staging', "queue -rollback"]
)
def test_full_text_scores_are_those_of_postgresql(world, find, text):
    scope = scope_for(world.principal("alice"))
    with connection.cursor() as cursor:
        cursor.execute(BY_POSTGRES, {"text": text, "scope": list(scope.connection_ids)})
        found = cursor.fetchall()
    assert found
    expected = [(title, score) for _, title, score in found]
    outcome = find(text, "alice", mode="fulltext")
    ranking = outcome.state.rankings["fulltext"]
    titles = dict(Document.objects.values_list("pk", "title"))
    assert [(titles[it.chunk_id.document_id], it.score) for it in ranking] == [
        (title, pytest.approx(score)) for title, score in expected
    ]
    pooled = {hit.chunk_id: hit.signals["fulltext"] for hit in outcome.hits}
    assert pooled == {it.chunk_id: pytest.approx(it.score) for it in ranking if it.chunk_id in pooled}


def test_a_query_is_never_relaxed_and_a_chunk_that_lacks_a_term_scores_nothing(find):
    outcome = find("rollback unheard")
    assert outcome.state.rankings["fulltext"] == ()
    assert outcome.hits
    assert {hit.signals["fulltext"] for hit in outcome.hits} == {0}
    assert any(hit.matches for hit in outcome.hits)


def test_the_weights_stay_when_one_vector_leads(find):
    hits = find("rollback staging").hits
    for hit in hits:
        assert hit.contributions["dense"] <= 0.6
        assert hit.contributions["fulltext"] <= 0.3
    assert max(hit.contributions["dense"] for hit in hits) == pytest.approx(0.6)
    assert find("rollback staging").state.weights == {"dense": 0.6, "fulltext": 0.3, "freshness": 0.1}


def test_freshness_halves_with_each_half_life_since_the_last_sync(world, find):
    Connection.objects.filter(pk=world.runbooks.pk).update(freshness_basis="modified", half_life_days=10)
    Document.objects.update(modified_at="2001-01-01T00:00:00Z")
    hit = find("rollback staging").hits[0]
    assert hit.chunk.modified_at.year == 2001
    assert hit.signals["age_days"] < 1
    assert hit.signals["freshness"] == pytest.approx(0.5 ** (hit.signals["age_days"] / 10))


def test_without_a_reranker_the_weighted_order_stands_and_the_search_is_degraded(find):
    outcome = find("rollback staging")
    assert "rerank_none" in outcome.state.degraded
    scores = [hit.score for hit in outcome.hits]
    assert {hit.score_type for hit in outcome.hits} == {"blend"}
    assert all(earlier >= later - 0.01 for earlier, later in pairwise(scores))


def test_passages_stand_under_the_documents_headers(find):
    passage = find("rollback staging").passages[0]
    assert passage.hit.chunk.heading_path
    assert passage.header == f"### [1] {passage.hit.chunk.title} — Runbooks — Engineering"
