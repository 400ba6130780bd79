"""Pages of experiments."""

import re

import pytest
from django.utils import timezone

from retrieval.models import Experiment, PresetVersion, SearchRecord
from retrieval.records.use import note_opened
from retrieval.search.live import live_search
from retrieval.search.request import SearchRequest
from tests.experiments import begun

pytestmark = pytest.mark.usefixtures("unhurried")
PAGE = "/experiments/"
FORM = {"name": "Agents or not", "a": "corecube:1", "b": "helix:0", "share": "25", "max_questions": "50", "ends_on": ""}


def text(response):
    return " ".join(response.content.decode().split())


@pytest.fixture
def alice(browse, world):
    return browse("alice")


def test_an_experiment_is_started_and_stopped_on_its_page(alice):
    assert "about twice the time" in text(alice.get(PAGE))
    last = timezone.localdate()
    shown = text(alice.post(PAGE, {**FORM, "ends_on": last.isoformat(), "includes_api": "on"}, follow=True))
    assert "The experiment was started" in shown
    assert "Start experiment" not in shown
    stored = Experiment.objects.get()
    assert (stored.preset_a, stored.number_a, stored.preset_b, stored.number_b) == ("corecube", 1, "helix", 0)
    assert (stored.share, stored.max_questions, stored.includes_api) == (25, 50, True)
    assert timezone.localtime(stored.ends_at).date() > last
    assert (
        "A: General search, version 1 · B: Agent search, shipped defaults · 25 % of the questions, also through the API"
        in shown
    )
    shown = text(alice.post(f"{PAGE}{stored.pk}/stop/", follow=True))
    assert "The experiment was stopped" in shown
    assert "Start experiment" in shown


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"max_questions": ""}, "Set an end"),
        ({"ends_on": "tomorrow"}, "The last day must be a date"),
        ({"ends_on": "9999-12-31"}, "The last day must be a date"),
        ({"share": "many"}, "between 1 and 100"),
        ({"name": ""}, "Give the experiment a name"),
        ({"a": "helix:0"}, "same configuration"),
        ({"b": "no-such:1"}, "no-such"),
        ({"b": ""}, "not started"),
    ],
)
def test_an_invalid_form_is_shown_again(alice, changes, problem):
    response = alice.post(PAGE, FORM | changes)
    assert response.status_code == 422
    assert problem in text(response)
    assert 'value="' + (FORM | changes)["name"] in text(response)
    assert not Experiment.objects.exists()


def test_the_report_and_the_side_of_each_hit_are_shown(alice, world):
    begun(world)
    for _ in range(8):
        outcome = live_search(SearchRequest(text="roll back staging"), principal=world.principal("alice"))
        record = SearchRecord.objects.get(pk=outcome.id)
        teams = [team for _, _, team in record.trace["interleaving"]["teams"]]
        note_opened(record, teams.index("B") + 1)
    shown = text(alice.get(PAGE))
    assert "B is preferred: General search, version 2." in shown
    assert "-0.500 [-0.500, -0.176]" in shown
    shown = text(alice.get(f"/log/{record.pk}/"))
    assert "interleaved" in shown
    assert shown.count(">side A<") + shown.count(">side B<") == sum(it is not None for it in teams[:10])


def test_an_open_experiment_does_not_tell_users_the_side_of_a_hit(world, browse):
    begun(world)
    shown = text(browse("bob").get("/explorer/?q=roll+back+staging"))
    assert "interleaved" in shown
    assert ">side A<" not in shown


def test_versions_are_offered_by_their_numbers_the_live_one_first(alice):
    PresetVersion.objects.create(preset="corecube", number=7, values={})
    PresetVersion.objects.filter(preset="helix").delete()
    offered = [label for value, label in alice.get(PAGE).context["sides"] if not value.startswith("co")][:1]
    assert offered == ["Agent search, shipped defaults (live)"]
    offered = [label for value, label in alice.get(PAGE).context["sides"] if value.startswith("corecube:")]
    assert offered == [
        "General search, version 1 (live)",
        "General search, version 7 (draft)",
        "General search, shipped defaults",
    ]


@pytest.mark.parametrize("tab", ["hits", "answer&answer=1", "lanes", "where&find=rollback", "trace"])
def test_every_view_of_the_explorer_shows_an_interleaved_search(world, browse, tab):
    begun(world)
    shown = text(browse("bob").get(f"/explorer/?q=roll+back+staging&tab={tab}"))
    assert "Roll" in shown
    assert SearchRecord.objects.filter(experiment__isnull=False).count() == 1


def test_a_new_experiment_begins_with_two_different_sides(alice):
    chosen = re.findall(r'<option value="([^"]+)" selected>', text(alice.get(PAGE)))
    assert len(chosen) == 1
    first, second, *_ = [value for value, _ in alice.get(PAGE).context["sides"]]
    assert (chosen, first) == ([second], "corecube:1")


def test_experiments_are_for_admins(browse, world):
    experiment, bob = begun(world), browse("bob")
    assert bob.get(PAGE).status_code == bob.post(PAGE, FORM).status_code == 404
    assert bob.post(f"{PAGE}{experiment.pk}/stop/").status_code == 404
    experiment.refresh_from_db()
    assert experiment.is_running
