"""No way in lets a processor rerank more than thirty hits of `helix`: form, draft, request, or a stored number."""

from contextlib import suppress

import pytest

from corecube.models import ApiKey
from retrieval.admin.preset_versions import promote, save_draft
from retrieval.errors import OverridesError, TunablesError
from retrieval.models import PresetVersion
from retrieval.presets.catalog import preset_named
from retrieval.search.configuration import configuration_of
from retrieval.search.request import SearchRequest
from retrieval.search.service import search

HELIX = preset_named("helix")
NAME = "rerank.candidates"


@pytest.fixture
def alice(client, people):
    """Return a function that sends a request with a key of an admin."""
    secret = ApiKey.issue(user=people["alice"], name="test")[1]
    headers = {"Authorization": f"Bearer {secret}"}
    return lambda method, path, body: getattr(client, method)(
        path, body, content_type="application/json", headers=headers
    )


def live(people, candidates):
    save_draft(preset=HELIX, values={NAME: candidates}, note="", actor=people["alice"])
    promote(preset=HELIX, number=1, actor=people["alice"])


@pytest.mark.parametrize("candidates", ["31", "200"])
def test_the_form_refuses_more_and_says_the_bound(client, people, candidates):
    client.force_login(people["alice"])
    sent = {"note": "", "replaces": "", **HELIX.defaults.values(), NAME: candidates}
    response = client.post("/presets/helix/", sent)
    assert response.status_code == 422
    assert b"30" in response.content
    assert not PresetVersion.objects.exists()
    assert client.post("/presets/helix/", {**sent, NAME: "30"}).status_code == 302
    assert PresetVersion.objects.get().values == {NAME: 30}


def test_the_api_refuses_a_draft_with_more(alice):
    response = alice("put", "/api/v1/presets/helix/draft", {"values": {NAME: 31}})
    assert response.status_code == 422
    assert f"{NAME} must be between 0 and 30" in response.json()["error"]["message"]
    assert not PresetVersion.objects.exists()


def test_saving_a_draft_refuses_more(people):
    with pytest.raises(TunablesError, match="between 0 and 30"):
        save_draft(preset=HELIX, values={NAME: 31}, note="", actor=people["alice"])


@pytest.mark.parametrize("allowed", [0, 20, 30])
def test_a_request_can_only_lower_it(world, alice, allowed):
    with suppress(TunablesError):
        live({"alice": world.alice}, allowed)
    body = {"query": "rollback", "preset": "helix", "overrides": {NAME: allowed + 1}}
    refused = alice("post", "/api/v1/search", body)
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "invalid_overrides")
    with pytest.raises(OverridesError):
        search(SearchRequest(text="x", preset="helix", overrides={NAME: 31}), principal=world.principal("alice"))
    assert alice("post", "/api/v1/search", {**body, "overrides": {NAME: allowed}}).status_code == 200


def test_a_stored_number_beyond_it_does_not_serve(people):
    PresetVersion.objects.create(
        preset="helix", number=1, status="live", values={NAME: 100}, created_by=people["alice"]
    )
    configuration = configuration_of(HELIX)
    assert configuration.config.values()[NAME] == 0
    assert NAME in configuration.unfit


def test_a_search_with_a_draft_is_bound_as_well(world):
    PresetVersion.objects.create(preset="helix", number=1, status="draft", values={NAME: 100}, created_by=world.alice)
    outcome = search(SearchRequest(text="rollback", preset="helix", draft=True), principal=world.principal("alice"))
    assert "rerank" not in [span.stage for span in outcome.trace]
    assert "config_unfit" in outcome.state.degraded
