"""The APIs' own descriptions, which have to work under the strict content security policy."""

import re

import pytest
from django.contrib.staticfiles import finders

PAGES = ["/api/docs", "/v1/docs", "/v2/docs", "/api/dify/docs"]


@pytest.mark.parametrize("path", PAGES)
def test_the_page_loads_nothing_from_elsewhere_and_runs_nothing_inline(db, client, path):
    page = client.get(path)
    html = page.content.decode()
    assert page.status_code == 200
    sources = re.findall(r"""<(?:script|link)[^>]*\b(?:src|href)="([^"]*)""", html)
    assert sources
    assert all(source.startswith("/static/") for source in sources)
    assert all("src=" in tag or "application/json" in tag for tag in re.findall(r"<script[^>]*>", html))
    assert "<style" not in html
    assert " style=" not in html


@pytest.mark.parametrize("path", PAGES)
def test_everything_that_the_page_loads_is_here(db, client, path):
    html = client.get(path).content.decode()
    for source in re.findall(r"""<(?:script|link)[^>]*\b(?:src|href)="/static/([^"]*)""", html):
        assert finders.find(source)


@pytest.mark.parametrize("path", PAGES)
def test_every_error_response_has_the_schema_of_its_api(db, client, path):
    described = client.get(path.replace("docs", "openapi.json")).json()
    operations = [it for methods in described["paths"].values() for it in methods.values()]
    errors = [it for operation in operations for status, it in operation["responses"].items() if status >= "400"]
    name = "DifyError" if "dify" in path else "ErrorOut"
    assert {"503", "422"} <= operations[0]["responses"].keys()
    assert all(
        it["content"] == {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}} for it in errors
    )
    assert name in described["components"]["schemas"]


def test_corecubes_own_api_is_described(db, client):
    described = client.get("/api/openapi.json").json()
    assert described["paths"].keys() == {
        "/api/v1/access/check",
        "/api/v1/connections",
        "/api/v1/connections/check",
        "/api/v1/connections/{slug}",
        "/api/v1/connections/{slug}/check",
        "/api/v1/connections/{slug}/dry-run",
        "/api/v1/connections/{slug}/quality",
        "/api/v1/connections/{slug}/sync",
        "/api/v1/connections/{slug}/uploads",
        "/api/v1/context-pack",
        "/api/v1/documents",
        "/api/v1/documents/{document_id}",
        "/api/v1/feedback",
        "/api/v1/indexes",
        "/api/v1/indexes/rollback",
        "/api/v1/indexes/{number}/build",
        "/api/v1/indexes/{number}/drop",
        "/api/v1/indexes/{number}/switch",
        "/api/v1/jobs",
        "/api/v1/jobs/{job_id}",
        "/api/v1/jobs/{job_id}/cancel",
        "/api/v1/jobs/{job_id}/retry",
        "/api/v1/judgments",
        "/api/v1/keys",
        "/api/v1/keys/{key_id}",
        "/api/v1/language-models",
        "/api/v1/language-models/test",
        "/api/v1/language-models/{slug}",
        "/api/v1/language-models/{slug}/test",
        "/api/v1/lifeline",
        "/api/v1/presets",
        "/api/v1/presets/{name}/draft",
        "/api/v1/presets/{name}/gate",
        "/api/v1/presets/{name}/promote",
        "/api/v1/presets/{name}/rollback",
        "/api/v1/presets/{name}/versions",
        "/api/v1/recall",
        "/api/v1/remember",
        "/api/v1/routing",
        "/api/v1/search",
        "/api/v1/searches",
        "/api/v1/searches/{search_id}",
        "/api/v1/usage",
        "/api/v1/evidence",
        "/api/v1/evaluation/compare",
        "/api/v1/evaluation/runs",
        "/api/v1/evaluation/runs/{run_id}",
        "/api/v1/evaluation/runs/{run_id}/cancel",
        "/api/v1/evaluation/sets",
        "/api/v1/evaluation/sets/{question_set}",
        "/api/v1/evaluation/sets/{question_set}/draw",
        "/api/v1/evaluation/sets/{question_set}/import",
        "/api/v1/evaluation/gates",
        "/api/v1/evaluation/schedules",
        "/api/v1/evaluation/experiments",
        "/api/v1/evaluation/experiments/{experiment_id}",
        "/api/v1/evaluation/experiments/{experiment_id}/stop",
        "/api/v1/evaluation/sweeps",
        "/api/v1/evaluation/sweeps/{sweep_id}",
        "/api/v1/evaluation/sweeps/{sweep_id}/cancel",
        "/api/v1/evaluation/sweeps/{sweep_id}/draft",
        "/api/v1/section-sets",
        "/api/v1/section-sets/{name}",
    }
    assert described["components"]["schemas"]["SearchIn"]["properties"]["top_k"]["maximum"] == 100
    assert "401" in described["paths"]["/api/v1/search"]["post"]["responses"]


def test_the_openai_compatible_api_is_described(db, client):
    described = client.get("/v1/openapi.json").json()
    assert described["paths"].keys() == {
        "/v1/models",
        "/v1/models/{name}",
        "/v1/chat/completions",
        "/v1/completions",
        "/v1/responses",
        "/v1/responses/{response_id}",
        "/v1/embeddings",
        "/v1/rerank",
    }
    assert client.get("/v2/openapi.json").json()["paths"].keys() == {"/v2/rerank"}


def test_the_api_for_dify_is_described(db, client):
    assert client.get("/api/dify/openapi.json").json()["paths"].keys() == {"/api/dify/retrieval"}


def test_the_descriptions_name_how_to_sign_in(db, client):
    schemes = client.get("/v1/openapi.json").json()["components"]["securitySchemes"]
    assert [(scheme["type"], scheme["scheme"]) for scheme in schemes.values()] == [("http", "bearer")]


@pytest.mark.parametrize(
    "path", ["/api/openapi.json", "/v1/openapi.json", "/v2/openapi.json", "/api/dify/openapi.json"]
)
def test_no_optional_field_has_a_default_that_a_generated_type_would_require(db, client, path):
    schemas = client.get(path).json()["components"]["schemas"]
    for of_parameters in ("LifelineIn", "QualityIn"):
        schemas.pop(of_parameters, None)
    fields = {f"{name}.{field}": it for name, of in schemas.items() for field, it in of.get("properties", {}).items()}
    assert [name for name, it in fields.items() if "default" in it] == []
