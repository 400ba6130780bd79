"""The form of a connection, made from what each kind's config declares."""

import pytest

from corecube.connectors.kinds import KINDS
from corecube.models import Compartment, Connection
from corecube.secrets import seal
from explorer.pages.connections.forms import ConnectionForm, config_properties
from tests.connector_examples import EXAMPLES

MINIMAL = {kind: example.form for kind, example in EXAMPLES.items()}


@pytest.fixture
def compartment(db):
    return Compartment.objects.create(slug="engineering", name="Engineering")


@pytest.fixture
def vault(compartment):
    """A stored repository with a secret."""
    return Connection.objects.create(
        slug="vault",
        name="Vault",
        kind="git",
        config={"url": "https://git.example.invalid/r.git"},
        compartment=compartment,
        sealed_secrets=seal({"token": "zanzibar-4711"}),
    )


@pytest.fixture
def send(compartment):
    def form(kind, instance=None, **changes):
        values = {
            "name": "Team wiki",
            "compartment": compartment.pk,
            "sensitivity": 1,
            "trust": 2,
            "half_life_days": "30",
            "freshness_basis": "modified",
            "chunk_profile": "default",
            **MINIMAL[kind],
        }
        return ConnectionForm({**values, **changes}, instance=instance or Connection(kind=kind))

    return form


def test_every_kind_is_tried_here():
    assert MINIMAL.keys() == KINDS.keys()


@pytest.mark.parametrize("kind", KINDS)
def test_a_form_asks_for_all_that_a_config_may_hold(db, kind):
    form = ConnectionForm(instance=Connection(kind=kind))
    asked = {name.removeprefix("config_") for name in form.fields if name.startswith("config_")}
    assert asked == set(KINDS[kind].model().model_fields)
    assert all(field.label for field in form)


@pytest.mark.parametrize("kind", KINDS)
def test_the_least_that_a_kind_needs_makes_a_connection(send, kind):
    form = send(kind)
    assert form.is_valid(), form.errors
    assert (form.instance.slug, form.instance.kind, form.instance.half_life_days) == ("team-wiki", kind, 30.0)


def test_lines_and_megabytes_become_lists_and_bytes(send):
    form = send("web", config_max_bytes="1.5", config_include="*.html\n!/old/")
    assert form.is_valid(), form.errors
    config = form.instance.config
    assert config["start"] == ["https://www.example.invalid/", "https://www.example.invalid/b"]
    assert (config["max_bytes"], config["include"], config["follow_links"]) == (1572864, ["*.html", "!/old/"], False)


def test_a_missing_scheme_is_added_to_a_web_address(send):
    form = send("web", config_start="docs.example.invalid\nhttp://www.example.invalid/")
    assert form.is_valid(), form.errors
    assert form.instance.config["start"] == ["https://docs.example.invalid", "http://www.example.invalid/"]


def test_the_user_of_a_token_is_beside_it(db):
    form = ConnectionForm(instance=Connection(kind="confluence"))
    assert [it.name for it in form.source()] == ["config_url", "config_spaces", "config_user"]


def test_a_stored_config_is_shown_as_it_was_filled_in(db):
    config = {"path": "/srv", "include": ["*.md", "*.txt"], "max_bytes": 1572864}
    form = ConnectionForm(instance=Connection(kind="folder", config=config))
    assert form["config_path"].value() == "/srv"
    html = str(form["config_include"]) + str(form["config_max_bytes"])
    assert "*.md\n*.txt</textarea>" in html
    assert 'value="1.5"' in html


@pytest.mark.parametrize(
    ("kind", "changes", "field", "words"),
    [
        ("folder", {"config_path": ""}, "config_path", "This field is required."),
        ("web", {"config_max_pages": "0"}, "config_max_pages", "Must be at least 1."),
        ("web", {"config_max_pages": "many"}, "config_max_pages", "Enter a number."),
        ("web", {"config_delay_seconds": "61"}, "config_delay_seconds", "Must be at most 60."),
        ("web", {"config_start": "ftp://x"}, "config_start", None),
        ("web", {"config_start": " \n "}, "config_start", "This field is required."),
        (
            "web",
            {"config_private_networks": "10.0.0.0/8\nhome"},
            "config_private_networks",
            "Line 2: It is not a network. Write it as 10.20.0.0/16.",
        ),
        ("git", {"config_branch": "-x"}, "config_branch", "This is not a branch name: '-x'."),
        ("git", {"config_timeout_seconds": "0"}, "config_timeout_seconds", "It must be more than 0."),
        ("git", {"config_url": "https://me:pass-word@x.example/r"}, "config_url", None),
        ("s3", {"config_bucket": "a b c"}, "config_bucket", "It contains an invalid character."),
        ("s3", {"config_addressing": "carrier"}, "config_addressing", None),
        (
            "s3",
            {"secret_access_key": "AKIA"},
            "secret_secret_key",
            "A bucket needs both an access key and a secret key, or neither.",
        ),
        ("confluence", {"config_spaces": "EN G"}, "config_spaces", "This is not a space key: 'EN G'."),
        ("push", {"config_max_bytes": "-1"}, "config_max_bytes", None),
        ("push", {"name": "!!!"}, "name", None),
        ("push", {"slug": "vault"}, "slug", "Another connection has this slug."),
        ("push", {"slug": "new"}, "slug", "This slug is reserved."),
        ("push", {"compartment": ""}, "compartment", "This field is required."),
        ("push", {"sensitivity": "9"}, "sensitivity", None),
        ("push", {"half_life_days": "0"}, "half_life_days", None),
        ("folder", {"sync_every_minutes": "50000"}, "sync_every_minutes", None),
    ],
)
def test_what_is_wrong_is_said_at_its_field(send, vault, kind, changes, field, words):
    form = send(kind, **changes)
    assert not form.is_valid()
    assert list(form.errors) == [field]
    assert words is None or form.errors[field] == [words]
    assert "pass-word" not in str(form.errors)


def test_a_secret_is_never_shown_again(send, vault):
    shown = ConnectionForm(instance=vault)
    assert next(shown.secret_fields())["length"] == 13
    sent = send("git", vault, secret_token="typed-in-anew", name="")
    assert not sent.is_valid()
    for form in (shown, sent):
        assert "zanzibar" not in form.as_p()
        assert "typed-in-anew" not in form.as_p()


def test_a_secret_stays_is_replaced_or_is_removed(send, vault):
    sent = [
        send("git", vault, slug="vault", **changes) for changes in ({}, {"secret_token": "new"}, {"drop_token": "on"})
    ]
    assert [form.is_valid() and form.secrets for form in sent] == [{}, {"token": "new"}, {"token": ""}]


def test_a_secret_does_not_follow_to_another_host(send, vault):
    elsewhere = {"slug": "vault", "config_url": "https://evil.example.invalid/r.git"}
    assert list(send("git", vault, **elsewhere).errors) == ["secret_token"]
    assert send("git", vault, **elsewhere, secret_token="new").is_valid()
    assert send("git", vault, slug="vault", config_url="https://git.example.invalid/other.git").is_valid()


def test_what_must_be_filled_in_comes_first_and_the_filters_last():
    assert list(config_properties(KINDS["confluence"]))[:2] == ["url", "spaces"]
    assert list(config_properties(KINDS["web"]))[-3:] == ["include", "exclude", "max_bytes"]


def test_what_is_sent_back_as_it_was_shown_has_not_changed(vault):
    vault.config |= {"max_bytes": 123_456_789, "timeout_seconds": 0.1, "include": ["a", "b"]}
    shown = ConnectionForm(instance=vault)
    sent = ConnectionForm({field.html_name: field.value() for field in shown}, instance=vault)
    assert sent.is_valid(), sent.errors
    assert sent.changed_data == []
    assert sent.instance.config["max_bytes"] == 123_456_789


def test_figures_are_shown_without_idle_digits(vault):
    form = ConnectionForm(instance=vault)
    assert (form["half_life_days"].value(), form["config_timeout_seconds"].value()) == ("180", "600")
