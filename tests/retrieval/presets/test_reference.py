"""Reference versions of presets: read from a document's lines, and never changed."""

from dataclasses import replace
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from corecube.errors import ConfigError, InvalidRequestError
from corecube.models import ApiKey, AuditEvent
from retrieval.admin import preset_versions
from retrieval.errors import ReferenceVersionError, TunablesError, UnknownVersionError
from retrieval.models import PresetVersion, SearchRecord
from retrieval.presets import reference
from retrieval.presets.catalog import PRESETS, TUNED, version_of
from retrieval.presets.reference import reference_version
from retrieval.search.configuration import configuration_of
from retrieval.search.request import SearchRequest
from retrieval.search.service import search

REFERENCES = [name for name in PRESETS if name not in TUNED]


@pytest.fixture(params=REFERENCES)
def name(request):
    return request.param


@pytest.fixture
def written(monkeypatch):
    """Return a function that makes a reference version of `corecube` from some lines."""

    def version(*lines):
        monkeypatch.setattr(reference, "read_toml", lambda *_: {"line": [dict(line) for line in lines]})
        return reference_version(PRESETS["corecube"], "As written")

    return version


def line(**values):
    return {
        "section": "Weights",
        "says": "Something",
        "values": {name.replace("__", "."): it for name, it in values.items()},
    }


def test_it_has_the_numbers_of_its_lines_and_else_those_of_its_preset(written):
    found = written(
        line(blend__dense=0.9), {"section": "Order", "says": "First one, then the other", "note": "Left open"}
    )
    assert found.name == "corecube@reference"
    assert found.base == PRESETS["corecube"].base == "corecube"
    assert found.defaults == PRESETS["corecube"].defaults.with_values({"blend.dense": 0.9})
    assert [(it.section, it.says, dict(it.values), it.note) for it in found.lines] == [
        ("Weights", "Something", {"blend.dense": 0.9}, ""),
        ("Order", "First one, then the other", {}, "Left open"),
    ]


def test_lines_that_contradict_each_other_or_the_settings_make_none(written):
    assert written(line(blend__dense=0.9), line(blend__dense=0.9))
    with pytest.raises(ConfigError, match=r"blend\.dense different values: 0\.9, 0\.8"):
        written(line(blend__dense=0.9), line(blend__dense=0.8))
    with pytest.raises(TunablesError, match="is not a setting"):
        written(line(blend__densest=0.9))
    with pytest.raises(TunablesError, match="must be between"):
        written(line(blend__dense=2))


def test_it_comes_after_its_preset_and_has_its_settings(name):
    base = PRESETS[name].base
    names = list(PRESETS)
    assert names.index(name) == names.index(base) + 1
    assert isinstance(PRESETS[name].defaults, type(PRESETS[base].defaults))
    assert version_of(base, name) is PRESETS[name]
    other = next(it for it in TUNED if it != base)
    with pytest.raises(InvalidRequestError):
        version_of(other, name)


def test_nothing_changes_it(name, people):
    preset, alice = PRESETS[name], people["alice"]
    for change in (
        lambda: preset_versions.save_draft(preset=preset, values={}, note="", actor=alice),
        lambda: preset_versions.promote(preset=preset, number=0, actor=alice),
        lambda: preset_versions.discard_draft(preset=preset, actor=alice),
    ):
        with pytest.raises(ReferenceVersionError):
            change()
    with pytest.raises(CommandError, match="uses the calibration of its preset"):
        call_command("calibrate", "questions.jsonl", preset=name)
    assert not PresetVersion.objects.exists()
    assert not AuditEvent.objects.filter(action__startswith="preset.").exists()


def test_a_stored_version_of_another_origin_has_no_effect(name, db):
    for number, status in enumerate(("live", "draft"), start=1):
        PresetVersion.objects.create(preset=name, number=number, status=status, values={"deadline_ms": 1234})
    assert configuration_of(PRESETS[name]).config == PRESETS[name].defaults
    with pytest.raises(UnknownVersionError):
        configuration_of(PRESETS[name], draft=True)


def test_the_api_refuses_to_change_it(name, people, client):
    secret = ApiKey.issue(user=people["alice"], name="test")[1]

    def status(method, path, body=None):
        headers = {"Authorization": f"Bearer {secret}"}
        sent = getattr(client, method)(f"/api/v1/presets/{name}/{path}", body, "application/json", headers=headers)
        return sent.status_code, sent.json().get("error", {}).get("code")

    refused = 409, "reference_version"
    assert status("put", "draft", {"values": {"deadline_ms": 1234}}) == refused
    assert status("delete", "draft") == refused
    assert status("post", "promote", {"number": 0}) == refused
    assert status("get", "versions") == (200, None)


def test_the_api_and_the_command_line_show_its_numbers(name, people, client):
    secret = ApiKey.issue(user=people["alice"], name="test")[1]
    presets = client.get("/api/v1/presets", headers={"Authorization": f"Bearer {secret}"}).json()["presets"]
    (listed,) = (it["tunables"] for it in presets if it["name"] == name)
    values = PRESETS[name].defaults.values()
    shown = {key: value for key, value in values.items() if key not in type(PRESETS[name].defaults).unused}
    assert {it["name"]: it["value"] for it in listed} == {it["name"]: it["default"] for it in listed} == shown
    out = StringIO()
    call_command("tunables", preset=name, stdout=out)
    assert all(f"| `{key}` | {value:g}" in out.getvalue() for key, value in shown.items())


def test_its_page_shows_each_line_and_has_no_form(name, people):
    client, path, preset = Client(), f"/presets/{name}/", PRESETS[name]
    client.force_login(people["alice"])
    page = client.get(path)
    rows = page.context["rows"]
    assert [row.line for row in rows] == list(preset.lines)
    assert [[it.name for it in row.settings] for row in rows] == [list(it.values) for it in preset.lines]
    tuned = PRESETS[preset.base].defaults.values()
    differing = {key for key, value in preset.defaults.values().items() if value != tuned.get(key, value)}
    assert {it.name for row in rows for it in row.settings if it.tuned} == differing
    assert b'<form class="preset-part' not in page.content
    saved = client.post(path, {"deadline_ms": 1234})
    assert (saved.status_code, b"stays as shipped" in saved.content) == (409, True)
    client.post(f"{path}promote/0/", {"live": "0"})
    assert client.get(f"{path}promote/0/").status_code == 404
    assert not PresetVersion.objects.exists()


@pytest.mark.usefixtures("unhurried")
def test_a_search_with_it_finds_only_what_its_user_may_see(name, world):
    def found(user):
        outcome = search(SearchRequest(text="stolen passphrase", preset=name), principal=world.principal(user))
        shown = (*outcome.hits, *(passage.hit for passage in outcome.passages))
        return {hit.chunk.connection_id for span in outcome.trace for hit in (*shown, *span.left) if hit.facts}

    assert world.vault.pk in found("alice")
    assert world.vault.pk not in found("bob")


@pytest.mark.usefixtures("unhurried")
def test_a_search_with_it_is_recorded_under_its_name(name, world):
    outcome = search(SearchRequest(text="rollback staging", preset=name), principal=world.principal("bob"))
    assert outcome.hits
    record = SearchRecord.objects.get()
    assert (record.preset, record.trace["version"], record.trace["values"]) == (name, 0, {})


def test_a_key_for_the_preset_alone_does_not_open_it(name, world):
    principal = world.principal("bob")
    key, _ = ApiKey.issue(user=world.bob, name="narrow")
    key.presets = [PRESETS[name].base]
    assert not replace(principal, key=key).may_use(name)
