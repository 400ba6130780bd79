"""POST /api/v1/evidence and the section sets."""

import json
import uuid

import pytest
from django.core.exceptions import ObjectDoesNotExist

from corecube.models import ApiKey, AuditEvent
from retrieval.ingest.sync import sync_connection
from retrieval.models import Document, SearchRecord
from retrieval.presets.consolidated.evidence.section_reading import SHIPPED, shipped
from retrieval.search.section_sets import section_named, section_set_named

PATH = "/api/v1/evidence"
SETS = "/api/v1/section-sets"
WRITTEN = {
    "title": "Audit",
    "source_types": [{"name": "excel", "also": ["csv"]}, {"name": "markdown"}],
    "sections": [
        {"name": "events", "title": "Events", "template": "{subject} rollback release", "optional": ["markdown"]},
        {"name": "costs", "title": "Costs", "template": "{subject} rollback amount", "required": ["excel"]},
    ],
}


@pytest.fixture
def put(client):
    """Return a function that puts JSON with a key's secret."""

    def send(path, body, secret):
        headers = {"Authorization": f"Bearer {secret}"}
        return client.put(path, body, content_type="application/json", headers=headers)

    return send


@pytest.fixture
def delete(client):
    """Return a function that deletes an address with a key's secret."""
    return lambda path, secret: client.delete(path, headers={"Authorization": f"Bearer {secret}"})


@pytest.fixture
def audit(world, put):
    """Have a section set without floors, which the encoder of tests gives no use for."""
    assert put(f"{SETS}/audit", {"values": WRITTEN}, world.key("alice")).status_code == 200
    return world


def asking(**more):
    return {"section_set": "audit", "subject": "March", **more}


def sections(response):
    assert response.status_code == 200, response.content
    return {it["section"]: it for it in response.json()["sections"]}


def test_it_works(audit, post):
    response = post(PATH, asking(), audit.key("bob"))
    found = sections(response)
    assert list(found) == ["events", "costs"]
    assert response.json()["source_types"][:2] == ["excel", "markdown"]
    events = found["events"]
    assert (events["title"], events["query"], events["code"]) == ("Events", "March rollback release", "")
    hit = events["hits"][0]
    assert hit["rank"] == 1
    assert hit["source"]["connection"] == "runbooks"
    assert hit["provider"] in {"", "cross_encoder", "semantic_bm25"}
    assert (hit["recovered"], hit["beyond_filter"]) == (False, False)
    assert events["cells"]["markdown"]["presence"] == "optional"
    assert found["costs"]["cells"]["excel"] == {"presence": "missing", "count": 0, "recovered": 0}
    assert events["timings"]["total_ms"] > 0
    assert "explain" not in events
    assert "explain" not in hit
    record = SearchRecord.objects.get(pk=events["trace_id"])
    assert (record.user, record.surface, record.hit_count) == (audit.bob, "evidence", len(events["hits"]))


def test_without_a_set_it_is_the_report(world, post):
    body = {"section": "overview", "subject": "rollback", "budget_ms": 2000}
    response = post(PATH, body, world.key("bob"))
    assert response.json()["section_set"] == "report"
    assert list(sections(response)) == ["overview"]


def test_an_explanation_has_ledgers_spans_and_events(audit, post):
    events = sections(post(PATH, asking(section="events", explain=True), audit.key("bob")))["events"]
    assert {"analyze", "legs", "assemble"} <= {it["stage"] for it in events["explain"]["spans"]}
    assert all("event" in it for it in events["explain"]["events"])
    assert events["hits"][0]["explain"]["contributions"]


def test_documents_narrow_it_and_what_was_found_outside_of_them_is_marked(audit, post):
    wanted = Document.objects.get(title="Rolling back")
    found = sections(post(PATH, asking(section="events", documents=[str(wanted.pk)]), audit.key("alice")))["events"]
    of_document = [it["document_id"] == str(wanted.pk) for it in found["hits"]]
    assert any(of_document)
    assert of_document == [not it["beyond_filter"] for it in found["hits"]]


def test_where_nothing_is_in_the_documents_all_is_marked(audit, post):
    body = asking(section="events", documents=[str(uuid.uuid4())], budget_ms=10_000)
    found = sections(post(PATH, body, audit.key("bob")))["events"]
    assert found["hits"]
    assert all(it["beyond_filter"] for it in found["hits"])


def test_compartments_narrow_it(audit, post):
    found = sections(post(PATH, asking(section="events", compartments=["finance"]), audit.key("alice")))["events"]
    assert {it["source"]["connection"] for it in found["hits"]} == {"ledger"}


def test_it_finds_nothing_for_charlie(audit, post):
    found = sections(post(PATH, asking(explain=True), audit.key("charlie")))
    assert [it["hits"] for it in found.values()] == [[], []]


def test_a_section_that_fails_is_reported_beside_the_others(audit, put, post):
    bare = {"name": "bare", "title": "Bare", "template": "{subject}"}
    values = {**WRITTEN, "sections": [*WRITTEN["sections"], bare]}
    assert put(f"{SETS}/audit2", {"values": values}, audit.key("alice")).status_code == 200
    found = sections(post(PATH, {"section_set": "audit2"}, audit.key("bob")))
    assert (found["bare"]["code"], found["bare"]["trace_id"], found["bare"]["hits"]) == ("empty_query", None, [])
    assert found["events"]["hits"]


BAD = {
    "unknown set": ({"section_set": "nope"}, 404, "unknown_section_set", "section_set"),
    "set with NUL": ({"section_set": "\0"}, 404, "unknown_section_set", "section_set"),
    "unknown section": ({"section": "nope"}, 404, "unknown_section", "section"),
    "unknown compartment": ({"compartments": ["nope"]}, 404, "unknown_compartment", "compartments"),
    "hidden compartment": ({"compartments": ["finance"]}, 404, "unknown_compartment", "compartments"),
    "unknown connection": ({"scope": {"include": ["nope"]}}, 404, "unknown_connection", "scope"),
    "hidden connection": ({"scope": {"include": ["vault"]}}, 404, "unknown_connection", "scope"),
    "no UUID": ({"documents": ["x"]}, 422, "invalid_request", "documents.0"),
    "long subject": ({"subject": "x" * 201}, 422, "invalid_request", "subject"),
    "no time": ({"budget_ms": 49}, 422, "invalid_request", "budget_ms"),
    "too much time": ({"budget_ms": 600_001}, 422, "invalid_request", "budget_ms"),
    "unknown field": ({"top_k": 3}, 422, "invalid_request", "top_k"),
    "unknown override": ({"overrides": {"nope": 1}}, 422, "invalid_overrides", "overrides"),
    "raised cost": ({"overrides": {"deadline_ms": 600_000}}, 422, "invalid_overrides", "overrides"),
    "draft": ({"draft": True}, 403, "not_permitted", None),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_refused(world, post, case):
    body, *refusal = BAD[case]
    response = post(PATH, body, world.key("bob"))
    error = response.json()["error"]
    assert [response.status_code, error["code"], error["param"]] == refusal
    assert not SearchRecord.objects.exists()


def test_a_key_that_may_not_use_the_preset_is_refused_everywhere(world, post, get, put, delete):
    secret = world.key("alice")
    ApiKey.objects.update(presets=["corecube"])
    asked = (
        post(PATH, {}, secret),
        get(SETS, secret),
        put(f"{SETS}/audit", {"values": WRITTEN}, secret),
        delete(f"{SETS}/report", secret),
    )
    assert [it.status_code for it in asked] == [403] * 4


def test_every_section_counts_as_a_search_of_the_key(audit, post):
    secret = audit.key("bob")
    ApiKey.objects.filter(user=audit.bob).update(requests_per_minute=3)
    assert post(PATH, asking(), secret).status_code == 200
    assert post("/api/v1/search", {"query": "rollback"}, secret).status_code == 200
    refused = post(PATH, asking(), secret)
    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) >= 1


def test_a_key_with_a_low_limit_can_ask_for_a_whole_set_and_pays_for_it(audit, post):
    secret = audit.key("bob")
    ApiKey.objects.filter(user=audit.bob).update(requests_per_minute=1)
    assert post(PATH, asking(), secret).status_code == 200
    assert 60 < int(post(PATH, asking(), secret).headers["Retry-After"]) <= 120


def test_a_hidden_spreadsheet_changes_nothing_that_is_told(audit, post):
    """Ask as Bob before and after a spreadsheet comes that he may not see, and compare all but ids and times."""

    def told():
        response = post(PATH, asking(explain=True), audit.key("bob")).json()
        return json.dumps(plain(response), indent=1, sort_keys=True).splitlines()

    before = told()
    (audit.root / "ledger" / "costs.csv").write_text("item,amount\nMarch rollback,48200\n")
    (audit.root / "vault" / "costs.csv").write_text("item,amount\nMarch rollback,48200\n")
    sync_connection(audit.ledger)
    sync_connection(audit.vault)
    assert told() == before


def plain(value):
    """Return an answer without ids of runs and times, and without what a moment later changes in a number."""
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        timed = {"id", "trace_id", "ms", "waited_ms", "total_ms", "timings", "age_days"}
        return {name: plain(it) for name, it in value.items() if name not in timed}
    return [plain(it) for it in value] if isinstance(value, list) else value


def test_the_sets_are_listed_for_whoever_may_search(world, get):
    listed = get(SETS, world.key("bob")).json()
    assert listed["default"] == "report"
    assert [it["name"] for it in listed["section_sets"]] == list(SHIPPED)
    memo = listed["section_sets"][0]
    assert (memo["shipped"], memo["edited"]) == (True, False)
    policy = next(it for it in memo["sections"] if it["name"] == "financial_analysis")
    assert policy.keys() == {"name", "title", "required", "optional"}
    assert policy["required"] == ["excel"]
    assert {"values", "fingerprint"}.isdisjoint(memo)
    assert "bounds" not in listed


def test_an_admin_gets_their_content_and_the_bounds(world, get):
    listed = get(SETS, world.key("alice")).json()
    report = next(it for it in listed["section_sets"] if it["name"] == "report")
    assert report["values"] == shipped("report").to_mapping()
    assert {it["name"] for it in listed["bounds"]} == {"complexity", "cap", "keep", "score_floor", "quality_floor"}


def edited(get, secret, **values):
    report = next(it for it in get(SETS, secret).json()["section_sets"] if it["name"] == "report")
    rows = [{**row, **values} if row["name"] == "overview" else row for row in report["values"]["sections"]]
    return {"values": {**report["values"], "sections": rows}, "replaces": report["fingerprint"]}


def test_an_admin_edits_a_shipped_set_and_resets_it(world, get, put, delete):
    secret = world.key("alice")
    saved = put(f"{SETS}/report", edited(get, secret, score_floor=0.3), secret).json()
    assert (saved["edited"], saved["shipped"]) == (True, True)
    assert section_named(section_set_named("report"), "overview").score_floor == 0.3
    assert delete(f"{SETS}/report", secret).status_code == 204
    assert section_set_named("report") == shipped("report")
    assert [it.action for it in AuditEvent.objects.filter(action__startswith="section_set").order_by("pk")] == [
        "section_set.saved",
        "section_set.reset",
    ]


def test_what_does_not_fit_is_named_with_its_bounds(world, get, put):
    secret = world.key("alice")
    response = put(f"{SETS}/report", edited(get, secret, score_floor=3, cap=1), secret)
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["param"]) == (422, "invalid_values", "values")
    assert "overview.score_floor must be between 0.0 and 1.0." in error["message"]
    assert "overview.cap must be between 8 and 200." in error["message"]


def test_an_edit_of_something_else_is_a_conflict(world, get, put):
    secret = world.key("alice")
    body = edited(get, secret, score_floor=0.3)
    assert put(f"{SETS}/report", body, secret).status_code == 200
    refused = put(f"{SETS}/report", body, secret)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "version_conflict")


def test_an_own_set_is_deleted(audit, delete):
    secret = audit.key("alice")
    assert delete(f"{SETS}/audit", secret).status_code == 204
    assert delete(f"{SETS}/audit", secret).status_code == 404
    with pytest.raises(ObjectDoesNotExist):
        AuditEvent.objects.get(action="section_set.reset")


@pytest.mark.parametrize("name", ["A", "a-b", "x" * 61, "%00"])
def test_a_name_that_cannot_be_any_is_refused(world, put, name):
    assert put(f"{SETS}/{name}", {"values": WRITTEN}, world.key("alice")).status_code in {404, 422}


def test_the_sets_are_changed_by_admins_alone(audit, put, delete):
    secret = audit.key("bob")
    for name in ("audit", "report", "nope"):
        assert put(f"{SETS}/{name}", {"values": WRITTEN}, secret).status_code == 403
        assert delete(f"{SETS}/{name}", secret).status_code == 403
