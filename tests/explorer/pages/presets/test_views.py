"""Presets, for admins."""

from importlib import import_module

import pytest
from django.apps import apps
from django.test import Client

from corecube.models import AuditEvent
from explorer.components.run_label import label
from retrieval.evaluation.question_sets import save_case, set_named
from retrieval.evaluation.runs import run_waiting
from retrieval.models import PresetVersion
from retrieval.presets.catalog import PRESETS
from tests.questions import judge_passage

DEFAULTS = PRESETS["corecube"].defaults
PAGE = "/presets/corecube/"


@pytest.fixture
def browse(people):
    """Return a client that one of the cast has signed in with; most pages need no documents."""

    def client(name):
        signed_in = Client()
        signed_in.force_login(people[name])
        return signed_in

    return client


@pytest.fixture
def versions(people):
    """One retired version, one that is live, and a draft."""
    for number, status, weight in ((1, "retired", 0.7), (2, "live", 0.8), (3, "draft", 0.9)):
        PresetVersion.objects.create(
            preset="corecube",
            number=number,
            status=status,
            values={"blend.dense": weight},
            note=f"Weight <{weight}>",
            created_by=people["alice"],
        )


@pytest.fixture
def draft(versions):
    return PresetVersion.objects.get(status="draft")


def fields(**changes):
    """Return what the form sends, some of it changed; a dot in a name is written as two underscores."""
    changed = {name.replace("__", "."): value for name, value in changes.items()}
    return {"note": "", "replaces": "", **DEFAULTS.values(), **changed}


def page(response):
    return response.content.decode()


PAGES = ["/presets/", PAGE, "/presets/corecube/promote/1/"]


@pytest.mark.parametrize("path", PAGES)
def test_an_admin_sees_it(browse, versions, path):
    assert browse("alice").get(path).status_code == 200


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("name", ["bob", "charlie"])
def test_for_anyone_else_it_does_not_exist(browse, versions, path, name):
    assert browse(name).get(path).status_code == 404


@pytest.mark.parametrize("path", PAGES)
def test_a_stranger_is_asked_to_sign_in(db, client, path):
    assert client.get(path).headers["Location"].startswith("/login/")


@pytest.mark.parametrize("path", [PAGE, "/presets/corecube/discard/", "/presets/corecube/promote/1/"])
@pytest.mark.parametrize("name", ["bob", "charlie", None])
def test_nobody_else_changes_anything(browse, client, versions, path, name):
    sender = browse(name) if name else client
    before = list(PresetVersion.objects.values())
    assert sender.post(path, fields(live=2)).status_code == (404 if name else 302)
    assert list(PresetVersion.objects.values()) == before
    assert not AuditEvent.objects.exists()


def test_what_there_is_not_is_not_found(browse, versions):
    alice = browse("alice")
    for path in ("/presets/nope/", "/presets/nope/promote/1/", "/presets/corecube/promote/9/"):
        assert alice.get(path).status_code == 404
    # It is live already.
    assert alice.get("/presets/corecube/promote/2/").status_code == 404


def test_the_list_says_what_is_live(browse, versions):
    row, *_ = browse("alice").get("/presets/").context["rows"]
    assert (row["name"], row["live"], row["changed"], row["draft"]) == ("corecube", "version 2", 1, 3)


def test_without_versions_the_shipped_defaults_are_live(browse):
    row, *_ = browse("alice").get("/presets/").context["rows"]
    assert (row["live"], row["changed"], row["draft"]) == ("shipped defaults", 0, None)


def test_every_tunable_has_a_field_with_its_bounds_and_help(browse):
    text = page(browse("alice").get(PAGE))
    for facts in DEFAULTS.declared_below():
        assert f'name="{facts.name}"' in text
        assert f'for="id_{facts.name}"' in text
    assert 'min="1" max="2000"' in text
    assert "default 160, 1 to 2,000; higher is slower" in text
    assert "Full-text search" in text


def test_a_draft_is_saved_and_compared_with_what_is_live(browse, people):
    response = browse("alice").post(PAGE, fields(blend__dense="0.85", fusion__pool="50", note="Try"), follow=True)
    draft = PresetVersion.objects.get()
    assert (draft.status, draft.values, draft.note) == ("draft", {"blend.dense": 0.85, "fusion.pool": 50}, "Try")
    assert draft.created_by == people["alice"]
    assert [(row.name, row.before, row.after) for row in response.context["changes"]] == [
        ("fusion.pool", "160 hits", "50 hits"),
        ("blend.dense", "0.6", "0.85"),
    ]
    assert "Searches use it after you promote it." in page(response)
    assert 'href="/explorer/?preset=corecube&amp;draft=1"' in page(response)


def test_the_form_holds_the_draft_and_marks_what_is_not_live(browse, versions):
    response = browse("alice").get(PAGE)
    rows = {row.facts.name: row for it in response.context["sections"] for row in it.rows}
    assert (rows["blend.dense"].field.value(), rows["blend.dense"].live) == (0.9, "live 0.8")
    assert rows["blend.fulltext"].live == ""
    assert page(response).count("is-changed") == 1
    assert [it.title for it in response.context["sections"] if it.is_open] == ["Blend"]
    assert {it.title: it.changed for it in response.context["sections"] if it.changed} == {"Blend": 1}
    assert "Weight &lt;0.9&gt;" in page(response)


def test_without_a_draft_the_form_starts_from_what_is_live(browse, draft):
    draft.delete()
    response = browse("alice").get(PAGE)
    assert 'name="blend.dense" value="0.8"' in page(response)
    assert "Start a draft" in page(response)


@pytest.mark.parametrize(
    ("changes", "wrong", "message"),
    [
        ({"blend__dense": "1.5"}, "blend.dense", "less than or equal to 1"),
        ({"fusion__pool": "2.5"}, "fusion.pool", "Enter a whole number."),
        ({"fusion__pool": ""}, "fusion.pool", "This field is required."),
        ({"fusion__pool": "9" * 5000}, "fusion.pool", "Enter a whole number."),
        ({"blend__dense": "nan"}, "blend.dense", "Enter a number."),
        ({"answerability__partial_from": "0.9"}, "answerability.partial_from", "It must not exceed"),
        ({"note": "x" * 201}, "note", "at most 200 characters"),
        ({"note": "a\0b"}, "note", "Null characters are not allowed."),
    ],
)
def test_what_is_wrong_is_said_at_its_field_and_nothing_is_lost(browse, versions, changes, wrong, message):
    response = browse("alice").post(PAGE, fields(ties__tolerance="0.123", **changes))
    assert response.status_code == 422
    errors = response.context["form"].errors
    assert set(errors) <= {wrong, "answerability.answerable_from"}
    assert message in errors[wrong][0]
    assert 'name="ties.tolerance" value="0.123"' in page(response)
    assert PresetVersion.objects.get(status="draft").values == {"blend.dense": 0.9}


def test_a_draft_that_another_saved_meanwhile_is_not_overwritten_unseen(browse, draft):
    alice = browse("alice")
    seen = draft.fingerprint
    draft.values = {"blend.dense": 0.95}
    draft.save()
    response = alice.post(PAGE, fields(blend__dense="0.5", replaces=seen))
    assert response.status_code == 409
    assert "Another user has changed" in page(response)
    assert 'name="blend.dense" value="0.5"' in page(response)
    assert PresetVersion.objects.get(status="draft").values == {"blend.dense": 0.95}
    # The page shows the other draft now, and what it sends next replaces that one.
    again = alice.post(PAGE, fields(blend__dense="0.5", replaces=response.context["replaces"]))
    assert again.status_code == 302
    assert PresetVersion.objects.get(status="draft").values == {"blend.dense": 0.5}


def test_bad_numbers_do_not_make_the_page_forget_which_draft_was_seen(browse, draft):
    response = browse("alice").post(PAGE, fields(blend__dense="7", replaces="older"))
    assert 'name="replaces" value="older"' in page(response)


def test_a_search_with_the_draft_says_what_differs_and_leads_to_a_comparison(browse, versions, world):
    alice = browse("alice")
    response = alice.get("/", {"q": "rollback", "draft": "1"})
    assert [(row.name, row.before, row.after) for row in response.context["draft_changes"]] == [
        ("blend.dense", "0.8", "0.9")
    ]
    assert "1 setting differs from the live version" in page(response)
    assert "/compare/?q=rollback&amp;a=corecube%3Alive%3Ahybrid&amp;b=corecube%3Adraft%3Ahybrid" in page(response)
    assert 'id="draft-diff"' not in page(alice.get("/", {"q": "rollback"}))
    assert "blend.dense" not in page(browse("bob").get("/", {"q": "rollback", "draft": "1"}))


def test_promoting_shows_what_changes_and_then_does_it(browse, draft, people):
    alice = browse("alice")
    shown = alice.get("/presets/corecube/promote/3/")
    assert [(row.name, row.before, row.after) for row in shown.context["changes"]] == [("blend.dense", "0.8", "0.9")]
    sent = {name: shown.context[name] for name in ("live", "fingerprint")}
    response = alice.post("/presets/corecube/promote/3/", sent, follow=True)
    assert "All searches now use version 3." in page(response)
    assert PresetVersion.objects.get(status="live").number == 3
    assert PresetVersion.objects.get(number=3).promoted_by == people["alice"]


@pytest.mark.parametrize("number", [0, 1])
def test_a_version_from_the_history_is_promoted_again(browse, versions, number):
    alice = browse("alice")
    path = f"/presets/corecube/promote/{number}/"
    assert f'href="{path}"' in page(alice.get(PAGE))
    shown = alice.get(path)
    alice.post(path, {name: shown.context[name] for name in ("live", "fingerprint")})
    live = PresetVersion.objects.filter(status="live").first()
    assert (live.number if live else 0) == number


@pytest.mark.parametrize(
    "sent",
    [{"live": "1"}, {"live": "2", "fingerprint": "stale"}, {"live": "\u00b2"}, {"live": "9" * 5000}, {}],
    ids=["other", "stale", "superscript", "long", "nothing"],
)
def test_a_promotion_of_something_else_than_was_shown_does_nothing(browse, versions, sent):
    response = browse("alice").post("/presets/corecube/promote/3/", sent, follow=True)
    assert 'class="notice is-bad"' in page(response)
    assert PresetVersion.objects.get(status="live").number == 2


def test_a_draft_is_discarded(browse, versions):
    response = browse("alice").post("/presets/corecube/discard/", follow=True)
    assert "The draft was discarded." in page(response)
    assert not PresetVersion.objects.filter(status="draft").exists()
    assert "This preset has no draft." in page(browse("alice").post("/presets/corecube/discard/", follow=True))


def test_a_reading_request_discards_nothing(browse, versions):
    assert browse("alice").get("/presets/corecube/discard/").status_code == 405


def test_live_numbers_that_do_not_fit_are_shown(browse, versions):
    PresetVersion.objects.filter(status="live").update(values={"blend.dense": 9, "gone": 1})
    text = page(browse("alice").get(PAGE))
    assert "are not valid in this release" in text
    assert '<span class="mono">gone</span> is not a setting' in text


def test_the_page_takes_the_same_statements_for_any_history(browse, versions, django_assert_max_num_queries):
    alice = browse("alice")
    # Session, user, versions, question sets, and the live version as a search reads it.
    with django_assert_max_num_queries(5):
        alice.get(PAGE)


@pytest.mark.usefixtures("world", "versions")
class TestTryingTheDraft:
    def test_the_search_page_says_that_it_ran_with_the_draft(self, browse):
        response = browse("alice").get("/", {"q": "rollback", "draft": "1"})
        assert "Draft, version 3" in page(response)
        assert response.context["panels"]["is_draft"]
        assert '<option value="1" selected>Draft</option>' in page(response)

    def test_without_it_the_live_version_runs(self, browse):
        response = browse("alice").get("/", {"q": "rollback"})
        assert "Draft, version" not in page(response)
        assert response.context["panels"]["version"] == "version 2"
        assert '<option value="1">Draft</option>' in page(response)

    def test_as_somebody_else(self, browse):
        response = browse("alice").get("/", {"q": "rollback", "draft": "1", "as": "bob"})
        assert "Draft, version 3" in page(response)
        assert "zanzibar" not in page(response)

    def test_where_there_is_no_draft_it_says_so(self, browse, draft):
        draft.delete()
        response = browse("alice").get("/", {"q": "rollback", "draft": "1"})
        assert response.status_code == 404
        assert "This preset has no draft." in page(response)

    def test_without_a_draft_there_is_nothing_to_choose(self, browse, draft):
        draft.delete()
        assert 'name="draft"' not in page(browse("alice").get("/explorer/"))

    @pytest.mark.parametrize("name", ["bob", "charlie"])
    def test_it_is_not_for_anyone_else(self, browse, name):
        browser = browse(name)
        assert browser.get("/", {"q": "rollback", "draft": "1"}).status_code == 403
        text = page(browser.get("/", {"q": "rollback"}))
        assert 'name="draft"' not in text
        assert "/presets/" not in text


@pytest.mark.usefixtures("world")
class TestTheEffectOfTheDraft:
    @pytest.fixture
    def release(self, world):
        found = set_named("Release questions", actor=world.alice)
        save_case(found, "rollback", actor=world.alice)
        return found

    @pytest.mark.usefixtures("release")
    def test_a_set_without_judgments_leads_to_them(self, browse, world):
        assert "Release questions has no judgments yet" in page(
            browse("alice").get(f"{PAGE}effect/?set=release-questions")
        )
        judge_passage(world, "rollback", "deployctl", 3)
        assert "Measures the draft and the live version on 1 question" in page(browse("alice").get(f"{PAGE}effect/"))

    def measure(self, alice, **changes):
        draft = PresetVersion.objects.filter(status="draft").first()
        seen = {"replaces": draft.fingerprint if draft else "", "measure": "1", "set": "release-questions"}
        return alice.post(PAGE, fields(**changes) | seen, follow=True)

    def test_the_draft_and_once_the_live_version_are_measured(self, browse, release):
        alice = browse("alice")
        response = self.measure(alice, fusion__pool="50")
        assert [name for name, *_ in response.context["open"]] == ["The live version", "The draft"]
        run_waiting()
        response = alice.get(f"{PAGE}effect/?set=release-questions")
        assert response.context["verdict"] == "No query has judgments in both runs, so nothing can be compared."
        assert '<a href="/judgments/release-questions/judge/">Judge the questions' in page(response)
        assert not response.context["open"]
        self.measure(alice, fusion__pool="60")
        assert list(release.runs.values_list("is_draft", flat=True)) == [True, True, False]

    @pytest.mark.usefixtures("release")
    def test_figures_of_before_an_edit_do_not_count(self, browse, world):
        judge_passage(world, "rollback", "deployctl", 3)
        alice = browse("alice")
        self.measure(alice, fusion__pool="50")
        run_waiting()
        draft = PresetVersion.objects.get()
        response = alice.post(PAGE, fields(fusion__pool="60", replaces=draft.fingerprint), follow=True)
        assert response.context.get("verdict") is None
        assert "has not been measured on Release questions since it was last saved" in page(response)

    def test_a_promoted_draft_keeps_its_figures_under_the_name_of_its_version(self, browse, world, release):
        judge_passage(world, "rollback", "deployctl", 3)
        alice = browse("alice")
        for weight in ("0.5", "0.7"):
            self.measure(alice, blend__dense=weight)
            run_waiting()
        alice.post(f"{PAGE}promote/1/", {"live": "0", "fingerprint": PresetVersion.objects.get().fingerprint})
        response = alice.get(f"{PAGE}effect/?set=release-questions")
        assert response.context["verdict"].startswith("No difference in nDCG (1 judged question)")
        assert response.context["names"] == ("Shipped defaults", "Version 1")
        assert [it.version for it in response.context["runs"]] == [0, 1]
        assert [label(it) for it in release.runs.all()] == [
            "General search, version 1",
            "General search draft of version 1",
            "General search, shipped defaults",
        ]
        # So they do where the version was promoted by an earlier release.
        release.runs.filter(version=1).update(is_draft=True)
        import_module("retrieval.migrations.0046_runs_of_promoted_drafts").name_by_version(apps, None)
        assert [it.is_draft for it in release.runs.all()] == [False, True, False]
        (trend,) = alice.get("/overview/").context["trends"]
        assert trend.label == "General search, version 1"
        alice.post(f"{PAGE}rollback/", {"live": "1"})
        (trend,) = alice.get("/overview/").context["trends"]
        assert trend.label == "General search, shipped defaults"

    def test_an_unknown_set_is_not_measured(self, browse, release):
        draft = fields(fusion__pool="50", measure="1", set="nope")
        assert browse("alice").post(PAGE, draft).status_code == 404
        assert not release.runs.exists()

    @pytest.mark.parametrize("name", ["bob", "charlie"])
    def test_for_anyone_else_it_does_not_exist(self, browse, name):
        assert browse(name).get(f"{PAGE}effect/").status_code == 404
