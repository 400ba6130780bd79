"""What an admin's key that is narrowed may do: every operation of the API is of one of three kinds."""

import pytest

from corecube.access import Principal
from corecube.models import ApiKey
from corecube.scope import Sensitivity
from retrieval.search.request import SearchRequest
from retrieval.search.service import search

#: It concerns the whole installation, which such a key knows only a part of: refused. With the least body it takes.
WHOLE = {
    "POST /v1/keys": {"name": "wider"},
    "GET /v1/language-models": None,
    "POST /v1/language-models": {"name": "M", "base_url": "http://127.0.0.1:1/v1", "model": "m"},
    "POST /v1/language-models/test": {"name": "M", "base_url": "http://127.0.0.1:1/v1", "model": "m"},
    "GET /v1/language-models/{slug}": None,
    "PATCH /v1/language-models/{slug}": {},
    "DELETE /v1/language-models/{slug}": None,
    "POST /v1/language-models/{slug}/test": None,
    "GET /v1/routing": None,
    "POST /v1/routing": {"compartment": "finance", "language_model": None},
    "DELETE /v1/routing": None,
    "GET /v1/usage": None,
    "GET /v1/indexes": None,
    "POST /v1/indexes": {},
    "POST /v1/indexes/rollback": None,
    "POST /v1/indexes/{number}/build": None,
    "POST /v1/indexes/{number}/switch": None,
    "POST /v1/indexes/{number}/drop": None,
    "GET /v1/evaluation/sets": None,
    "POST /v1/evaluation/sets": {"name": "Any"},
    "GET /v1/evaluation/sets/{question_set}": None,
    "POST /v1/evaluation/sets/{question_set}/import": {"files": ["any"]},
    "POST /v1/evaluation/sets/{question_set}/draw": {"sample": "random"},
    "GET /v1/evaluation/runs": None,
    "POST /v1/evaluation/runs": {"question_set": "any"},
    "GET /v1/evaluation/runs/{run_id}": None,
    "POST /v1/evaluation/runs/{run_id}/cancel": None,
    "DELETE /v1/evaluation/runs/{run_id}": None,
    "GET /v1/evaluation/compare": {"first": "0" * 32, "second": "0" * 32},
    "GET /v1/evaluation/gates": None,
    "PUT /v1/evaluation/gates": {"question_set": "any"},
    "DELETE /v1/evaluation/gates?question_set=any": None,
    "GET /v1/evaluation/schedules": {"question_set": "any"},
    "PUT /v1/evaluation/schedules": {"question_set": "any"},
    "GET /v1/evaluation/sweeps": None,
    "POST /v1/evaluation/sweeps": {"question_set": "any", "ranges": [{"name": "blend.dense", "values": [0.5]}]},
    "GET /v1/evaluation/sweeps/{sweep_id}": None,
    "POST /v1/evaluation/sweeps/{sweep_id}/cancel": None,
    "POST /v1/evaluation/sweeps/{sweep_id}/draft": {},
    "DELETE /v1/evaluation/sweeps/{sweep_id}": None,
    "GET /v1/evaluation/experiments": None,
    "POST /v1/evaluation/experiments": {
        "name": "Any",
        "a": {"preset": "corecube"},
        "b": {"preset": "helix"},
        "share": 5,
        "max_questions": 9,
    },
    "GET /v1/evaluation/experiments/{experiment_id}": None,
    "POST /v1/evaluation/experiments/{experiment_id}/stop": None,
    "GET /v1/presets/{name}/versions": None,
    "PUT /v1/presets/{name}/draft": {"values": {}, "replaces": ""},
    "DELETE /v1/presets/{name}/draft": None,
    "POST /v1/presets/{name}/promote": {"number": 1, "live": None, "fingerprint": "x"},
    "POST /v1/presets/{name}/rollback": {},
    "GET /v1/presets/{name}/gate": {"number": 1},
    "POST /v1/presets/{name}/gate": {"number": 1},
    "PUT /v1/section-sets/{name}": {"values": {}, "replaces": ""},
    "DELETE /v1/section-sets/{name}": None,
}
#: It concerns one connection, or the jobs of one: only within the narrowing.
MANAGED = {
    *("POST /v1/connections", "POST /v1/connections/check", "GET /v1/connections/{slug}"),
    *("PATCH /v1/connections/{slug}", "DELETE /v1/connections/{slug}", "POST /v1/connections/{slug}/check"),
    *("POST /v1/connections/{slug}/uploads", "GET /v1/connections/{slug}/sync", "POST /v1/connections/{slug}/sync"),
    *("POST /v1/connections/{slug}/dry-run", "GET /v1/connections/{slug}/quality", "GET /v1/jobs"),
    *("GET /v1/jobs/{job_id}", "POST /v1/jobs/{job_id}/cancel", "POST /v1/jobs/{job_id}/retry"),
    *("PUT /v1/documents", "DELETE /v1/documents", "GET /v1/access/check"),
}
#: Everybody may do it, an admin's key within its scope like any other; of keys it knows itself.
SCOPED = {
    *("POST /v1/search", "POST /v1/searches", "GET /v1/searches/{search_id}", "GET /v1/lifeline", "POST /v1/evidence"),
    *("POST /v1/context-pack", "GET /v1/documents/{document_id}", "GET /v1/connections", "GET /v1/presets"),
    *("GET /v1/section-sets", "POST /v1/feedback", "POST /v1/judgments", "POST /v1/recall", "POST /v1/remember"),
    *("GET /v1/keys", "DELETE /v1/keys/{key_id}"),
}


def test_every_operation_is_of_one_kind(client):
    paths = client.get("/api/openapi.json").json()["paths"]
    found = [f"{method.upper()} {path.removeprefix('/api')}" for path, methods in paths.items() for method in methods]
    assert sorted(found) == sorted([*(it.partition("?")[0] for it in WHOLE), *MANAGED, *SCOPED])


@pytest.mark.parametrize("narrowing", ["compartments", "sensitivity"])
def test_a_narrowed_key_changes_and_reads_nothing_of_the_whole(client, world, narrowing):
    key, secret = ApiKey.issue(user=world.alice, name="narrow")
    if narrowing == "compartments":
        key.compartments.add(world.runbooks.compartment)
    else:
        ApiKey.objects.filter(pk=key.pk).update(max_sensitivity=Sensitivity.PUBLIC)
    headers = {"Authorization": f"Bearer {secret}"}
    answers = {}
    for operation, body in WHOLE.items():
        method, path = operation.split(" ")
        address = "/api" + path.format(
            slug="none",
            question_set="any",
            number=1,
            name="consolidated",
            **dict.fromkeys(("run_id", "sweep_id", "experiment_id"), "0" * 32),
        )
        sent = {} if body is None else {"data": body, "content_type": "application/json"}
        answers[operation] = getattr(client, method.lower())(address, headers=headers, **sent).status_code
    assert {operation: status for operation, status in answers.items() if status != 403} == {}


def test_a_narrowed_key_is_not_told_what_rests_on_the_whole_index(world):
    """An admin is told exact BM25 scores, which hold lengths of documents beyond the narrowing."""
    key, _ = ApiKey.issue(user=world.alice, name="narrow")
    assert search(SearchRequest(text="rollback"), principal=Principal(world.alice, key)).state.is_admin
    key.compartments.add(world.runbooks.compartment)
    assert not search(SearchRequest(text="rollback"), principal=Principal(world.alice, key)).state.is_admin
