"""Two admins edit the same: who saves second is told, sees what the other has saved, and loses nothing typed."""

import re

import pytest
from django.contrib.auth.models import Group

from corecube import connections
from corecube.connectors import check
from corecube.models import AuditEvent, Compartment, Connection, User
from retrieval.models import LanguageModel
from tests.explorer.pages.connections.test_edit import settings_of


@pytest.fixture
def world(governed):
    """No page here needs documents."""
    LanguageModel.objects.create(
        slug="ours", name="Ours", base_url="http://localhost:1/v1", model="m", is_enabled=False
    )
    return governed


@pytest.fixture
def admin(browse):
    return browse("alice")


def marks(page):
    return re.findall(r'name="made_from" value="(\w+)"', page)


def model_form(**changes):
    fields = {"name": "Ours", "slug": "ours", "api": "openai", "base_url": "http://localhost:1/v1", "model": "m"}
    limits = {"context_tokens": 8192, "max_answer_tokens": 1024, "temperature": 0.1, "timeout_seconds": 60}
    limits |= {"allows_system_prompt": "on", "min_temperature": 0, "max_temperature": 1}
    more = {"silence_seconds": 30, "max_retries": 2, "prompt_price": 0, "completion_price": 0}
    return {**fields, **limits, **more, **changes}


#: Path, what is typed, what somebody else stores meanwhile, and how the page says it.
CASES = {
    "connection": (
        lambda _: "/connections/vault/edit/",
        lambda world: settings_of(world.vault, name="Typed"),
        lambda _: Connection.objects.filter(slug="vault").update(name="Theirs", half_life_days=7),
        ["Name · now <strong>Theirs</strong>", "Half-life (days) · now <strong>7</strong>"],
    ),
    "config": (
        lambda _: "/connections/vault/edit/",
        lambda world: settings_of(world.vault, name="Typed"),
        lambda world: Connection.objects.filter(slug="vault").update(
            config={**world.vault.config, "exclude": ["*.tmp", "*.bak"]}
        ),
        ["· now <strong>*.tmp, *.bak</strong>"],
    ),
    "compartment": (
        lambda _: "/access/compartments/finance/",
        lambda _: {"name": "Typed", "description": ""},
        lambda _: Compartment.objects.filter(slug="finance").update(description="Theirs"),
        ["Name · now <strong>Finance</strong>", "Description · now <strong>Theirs</strong>"],
    ),
    "group": (
        lambda _: f"/access/groups/{Group.objects.get().pk}/",
        lambda _: {"name": "Typed"},
        lambda _: Group.objects.update(name="Theirs"),
        ["Name · now <strong>Theirs</strong>"],
    ),
    "user": (
        lambda world: f"/access/users/{world.bob.pk}/",
        lambda _: {"first_name": "Typed", "last_name": ""},
        lambda _: User.objects.filter(username="bob").update(last_name="Theirs"),
        ["First name · now <strong>empty</strong>", "Last name · now <strong>Theirs</strong>"],
    ),
    "language model": (
        lambda _: "/language-models/ours/",
        lambda _: model_form(name="Typed"),
        lambda _: LanguageModel.objects.update(model="theirs", is_enabled=True),
        ["Model · now <strong>theirs</strong>", "Enabled · now <strong>yes</strong>"],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_comes_back_with_both_and_can_be_saved_then(admin, world, case):
    path, typed, meanwhile, told = case[0](world), case[1](world), case[2], case[3]
    # The last of a page's forms is the one that stores.
    sent = {**typed, "made_from": marks(admin.get(path).content.decode())[-1]}
    meanwhile(world)
    answer = admin.post(path, sent)
    page = answer.content.decode()
    assert answer.status_code == 409
    assert "Someone else has changed this in the meantime." in page
    for words in told:
        assert words in page
    assert 'value="Typed"' in page
    assert not AuditEvent.objects.filter(action__contains=".changed").exists()
    assert admin.post(path, {**sent, "made_from": marks(page)[-1]}).status_code == 302


def test_the_groups_of_a_user_are_not_put_back(admin, world):
    path = f"/access/users/{world.bob.pk}/"
    engineers, sales = Group.objects.get(), Group.objects.create(name="sales")
    mark = marks(admin.get(path).content.decode())[0]
    world.bob.groups.clear()
    answer = admin.post(f"{path}groups/", {"groups": [engineers.pk, sales.pk], "made_from": mark})
    page = answer.content.decode()
    assert (answer.status_code, world.bob.groups.count()) == (409, 0)
    assert "Groups · now <strong>empty</strong>" in page
    assert page.count('name="groups"') == page.count("checked") == 2
    sent = {"groups": [sales.pk], "made_from": marks(page)[0]}
    assert admin.post(f"{path}groups/", sent).status_code == 302
    assert world.bob.groups.get() == sales


def test_a_change_while_the_source_is_tried_is_not_overwritten(admin, world, monkeypatch):
    tried = check.check_source

    def slow(*args):
        Connection.objects.filter(slug="vault").update(sensitivity=0, enabled=False)
        return tried(*args)

    (world.root / "other").mkdir()
    sent = settings_of(world.vault, config_path=str(world.root / "other"))
    sent["made_from"] = marks(admin.get("/connections/vault/edit/").content.decode())[0]
    monkeypatch.setattr(connections, "check_source", slow)
    answer = admin.post("/connections/vault/edit/", sent)
    assert answer.status_code == 409
    assert "Sensitivity · now <strong>public</strong>" in answer.content.decode().replace("Public", "public")
    stored = Connection.objects.get(slug="vault")
    assert (stored.sensitivity, stored.enabled, stored.config) == (0, False, world.vault.config)


def test_a_connection_that_goes_while_its_form_is_open_is_not_found(admin, world):
    sent = settings_of(world.vault, name="Typed")
    world.vault.delete()
    assert admin.post("/connections/vault/edit/", sent).status_code == 404
