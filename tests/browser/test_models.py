"""Adding a language model in a real browser: from a preset, from the service's list, from a server on this machine."""

import pytest
from playwright.sync_api import expect

from retrieval.llm import local_servers
from retrieval.models import LanguageModel
from tests.browser.axe import findings
from tests.fake_llm import FakeLLM, Fault


@pytest.fixture
def local(monkeypatch):
    """The only server on this machine, at the port of Ollama."""
    with FakeLLM() as fake:
        fake.models = ["llama3.2:1b", "qwen2.5:0.5b"]
        fake.says("ready")
        monkeypatch.setattr(local_servers, "_PORTS", {fake.port: "ollama"})
        monkeypatch.setattr(local_servers.local_servers, "__kwdefaults__", {"own_ports": (), "ports": (fake.port,)})
        yield fake


def expect_usable(browser):
    """Expect that the page can be used by everybody, in both themes and on a phone."""
    for scheme in ("light", "dark"):
        browser.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert findings(browser.page) == []
    browser.resize(390)
    assert not browser.scrolls_sideways()
    browser.resize(1440)


def test_a_model_is_added_from_a_preset_and_the_list_of_its_service(start, local):
    alice = start(user="alice")
    page = alice.page
    alice.open("/language-models/new/")
    page.get_by_role("navigation", name="Services").get_by_role("link", name="Mistral").click()
    expect(page.get_by_label("Base URL")).to_have_value("https://api.mistral.ai/v1")
    page.get_by_label("Base URL").fill(local.url)
    page.get_by_label("API key").fill("sk-typed")
    page.get_by_role("button", name="List the service's models").click()
    expect(page.get_by_text("2 models found")).to_be_visible()
    page.get_by_label("Model", exact=True).select_option("qwen2.5:0.5b")
    page.get_by_label("Name").fill("Ours")
    expect_usable(alice)
    page.get_by_role("button", name="Add language model").click()
    expect(page.get_by_text("Ours was added. The model answers.")).to_be_visible()
    model = LanguageModel.objects.get()
    assert (model.slug, model.model, model.is_default) == ("ours", "qwen2.5:0.5b", True)
    assert local.headers[-1]["authorization"] == "Bearer sk-typed"


def test_a_server_on_this_machine_answers_after_four_clicks(start, local):
    alice = start(user="alice")
    page = alice.page
    alice.count_clicks()
    alice.open("/overview/")
    alice.go("System", "Language models")
    expect(page.get_by_role("heading", name="Found on this machine")).to_be_visible()
    expect_usable(alice)
    page.get_by_role("button", name="Add llama3.2:1b").click()
    expect(page.get_by_text("llama3.2:1b (Ollama) was added. The model answers.")).to_be_visible()
    expect(page.get_by_role("heading", name="Found on this machine")).to_have_count(0)
    page.get_by_role("button", name="Test llama3.2:1b (Ollama)").click()
    tile = page.get_by_role("article", name="llama3.2:1b (Ollama)")
    expect(tile).to_contain_text("The model answers")
    expect(tile.get_by_role("definition").filter(has_text="ready")).to_be_visible()
    assert alice.clicks == 4
    assert LanguageModel.objects.get().base_url == local.url
    expect_usable(alice)
    local.fault = Fault.UNAUTHORIZED
    page.get_by_role("button", name="Test llama3.2:1b (Ollama)").click()
    expect(tile).to_contain_text("refused the API key")
    expect(tile).to_contain_text("Check the API key, the base URL and the name of the model.")
    expect(tile).to_contain_text("not answering")
