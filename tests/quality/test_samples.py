"""The quality gate: the sample company's questions, asked by those who may ask them, on the real model."""

import tomllib

import ir_measures
import pytest
from django.conf import settings
from ir_measures import R, nDCG

from corecube.access import Principal, user_named
from retrieval.models import Document
from retrieval.samples import Company, add_samples
from retrieval.services import SearchRequest, search

_MANIFEST = settings.CORECUBE_SAMPLES_DIR / "company.toml"
_QUESTIONS = tomllib.loads(_MANIFEST.read_text())["question"]
#: What was measured when the gate was set, less 0.02.
_FLOORS = {nDCG @ 10: 0.84, R @ 50: 0.98}


@pytest.fixture
def outcomes(db, real_engine):
    """Every question's outcome, and the documents' paths by id."""
    add_samples(Company.read(settings.CORECUBE_SAMPLES_DIR))
    found = {}
    for question in _QUESTIONS:
        principal = Principal(user_named(question["user"]))
        found[question["id"]] = search(SearchRequest(text=question["text"], top_k=50), principal=principal)
    return found


def paths():
    rows = Document.objects.select_related("connection").values_list("pk", "connection__config", "external_id")
    root = str(settings.CORECUBE_SAMPLES_DIR)
    return {pk: f"{config['path']}/{name}".removeprefix(f"{root}/") for pk, config, name in rows}


def ranked(outcome, path_of):
    return list(dict.fromkeys(path_of[hit.chunk_id.document_id] for hit in outcome.hits))


def test_the_samples_rank_as_well_as_when_the_gate_was_set_and_leak_nothing(outcomes):
    path_of = paths()
    run, qrels = [], []
    for question in _QUESTIONS:
        documents = ranked(outcomes[question["id"]], path_of)
        assert not set(documents) & set(question.get("forbidden", [])), question["id"]
        expected = question.get("expected", [])
        qrels += [ir_measures.Qrel(question["id"], it["path"], it["grade"]) for it in expected]
        run += [ir_measures.ScoredDoc(question["id"], it, -rank) for rank, it in enumerate(documents)]
    figures = ir_measures.calc_aggregate(list(_FLOORS), qrels, run)
    assert all(figures[measure] >= floor for measure, floor in _FLOORS.items()), figures
