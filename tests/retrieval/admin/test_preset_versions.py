"""Drafts, promotions and rollbacks, by one admin and by two at once."""

import threading

import pytest
from django.db import connection, transaction

from corecube.models import AuditEvent
from retrieval.admin.preset_versions import discard_draft, promote, save_draft
from retrieval.errors import TunablesError, UnknownVersionError, VersionConflictError
from retrieval.models import PresetVersion
from retrieval.presets.catalog import PRESETS
from retrieval.search.configuration import configuration_of

PRESET = PRESETS["corecube"]


@pytest.fixture
def alice(people):
    return people["alice"]


@pytest.fixture
def save(alice):
    """Return a function that saves a draft in the place of the one there is."""

    def saved(values, *, note="", replaces=None):
        if replaces is None:
            draft = PresetVersion.objects.filter(status="draft").first()
            replaces = draft.fingerprint if draft else ""
        return save_draft(preset=PRESET, values=values, note=note, actor=alice, replaces=replaces)

    return saved


@pytest.fixture
def go_live(alice):
    """Return a function that promotes a version."""
    return lambda number, **seen: promote(preset=PRESET, number=number, actor=alice, **seen)


def states():
    return dict(PresetVersion.objects.order_by("number").values_list("number", "status"))


def live():
    configuration = configuration_of(PRESET)
    return configuration.number, configuration.config.blend.dense


def test_without_a_version_the_shipped_defaults_are_live(db):
    assert live() == (0, 0.6)


def test_a_draft_serves_nobody_until_it_is_promoted(save, go_live, alice):
    draft = save({"blend.dense": 0.8}, note="More of the vector leg")
    assert (draft.number, draft.status, draft.created_by, live()) == (1, "draft", alice, (0, 0.6))
    assert configuration_of(PRESET, draft=True).config.blend.dense == 0.8
    go_live(1)
    assert live() == (1, 0.8)
    promoted = PresetVersion.objects.get()
    assert (promoted.promoted_by, promoted.note) == (alice, "More of the vector leg")
    assert promoted.promoted_at >= promoted.created_at


def test_only_what_differs_from_the_defaults_is_kept(save):
    draft = save({"blend.dense": 0.6, "fusion.pool": 100.0})
    draft.refresh_from_db()
    assert draft.values == {"fusion.pool": 100}
    assert type(draft.values["fusion.pool"]) is int


def test_saving_again_edits_the_same_draft(save):
    first = save({"blend.dense": 0.8})
    second = save({"blend.dense": 0.7})
    assert (first.pk, second.number) == (second.pk, 1)
    assert configuration_of(PRESET, draft=True).config.blend.dense == 0.7


def test_values_that_do_not_fit_are_not_saved(save):
    with pytest.raises(TunablesError, match=r"blend\.dense must be between"):
        save({"blend.dense": 1.5})
    assert not PresetVersion.objects.exists()
    assert not AuditEvent.objects.exists()


def test_a_promotion_retires_what_was_live_and_a_retired_version_comes_back(save, go_live):
    for weight in (0.7, 0.8):
        go_live(save({"blend.dense": weight}).number)
    assert (states(), live()) == ({1: "retired", 2: "live"}, (2, 0.8))
    go_live(1)
    assert (states(), live()) == ({1: "live", 2: "retired"}, (1, 0.7))


def test_number_0_goes_back_to_the_shipped_defaults(save, go_live):
    go_live(save({"blend.dense": 0.8}).number)
    assert go_live(0) is None
    assert (states(), live()) == ({1: "retired"}, (0, 0.6))


def test_the_next_draft_is_numbered_after_the_last_version(save, go_live):
    go_live(save({}).number)
    assert save({}).number == 2


def test_a_discarded_draft_is_gone(save, alice):
    save({"blend.dense": 0.8})
    discard_draft(preset=PRESET, actor=alice)
    assert states() == {}
    with pytest.raises(UnknownVersionError, match="no draft"):
        configuration_of(PRESET, draft=True)
    with pytest.raises(UnknownVersionError, match="no draft"):
        discard_draft(preset=PRESET, actor=alice)


def test_every_change_is_in_the_audit_log(save, go_live, alice):
    save({"blend.dense": 0.8})
    go_live(1)
    save({})
    discard_draft(preset=PRESET, actor=alice)
    events = list(AuditEvent.objects.order_by("pk"))
    assert [event.action for event in events] == [
        "preset.draft_saved",
        "preset.promoted",
        "preset.draft_saved",
        "preset.draft_discarded",
    ]
    assert {(event.actor, event.subject) for event in events} == {(alice, "corecube")}
    assert events[1].details == {"number": 1, "retired": 0, "values": {"blend.dense": 0.8}}


def test_a_draft_that_another_edited_is_not_overwritten(save):
    seen = save({"blend.dense": 0.8}).fingerprint
    save({"blend.dense": 0.9})
    with pytest.raises(VersionConflictError, match="Another user has changed"):
        save({"blend.dense": 0.1}, replaces=seen)
    assert configuration_of(PRESET, draft=True).config.blend.dense == 0.9


@pytest.mark.parametrize("replaces", ["", "no such draft"])
def test_a_draft_is_replaced_only_by_who_has_seen_it(save, replaces):
    save({"blend.dense": 0.8})
    with pytest.raises(VersionConflictError):
        save({}, replaces=replaces)


def test_a_draft_that_was_discarded_meanwhile_is_not_brought_back(save, alice):
    seen = save({"blend.dense": 0.8}).fingerprint
    discard_draft(preset=PRESET, actor=alice)
    with pytest.raises(VersionConflictError):
        save({"blend.dense": 0.8}, replaces=seen)


def test_the_fingerprint_is_the_same_after_reading_and_another_after_an_edit(save):
    draft = save({"blend.dense": 1.0, "fusion.pool": 3}, note="A")
    assert PresetVersion.objects.get().fingerprint == draft.fingerprint
    seen = draft.fingerprint
    save({"blend.dense": 1.0, "fusion.pool": 3}, note="B")
    assert PresetVersion.objects.get().fingerprint != seen


@pytest.mark.parametrize(
    ("seen", "message"),
    [({"live": 0}, "Version 1 is live now, not 0"), ({"fingerprint": "stale"}, "Another user has changed version 2")],
)
def test_a_promotion_that_was_decided_on_something_else_is_refused(save, go_live, seen, message):
    go_live(save({"blend.dense": 0.7}).number)
    save({"blend.dense": 0.8})
    with pytest.raises(VersionConflictError, match=message):
        go_live(2, **seen)
    assert states() == {1: "live", 2: "draft"}


def test_what_is_live_is_not_promoted_again(save, go_live):
    go_live(save({}).number)
    with pytest.raises(VersionConflictError, match="Version 1 is live already"):
        go_live(1)
    with pytest.raises(UnknownVersionError, match="no version 9"):
        go_live(9)


def in_a_thread(call):
    """Run a call in a thread with a connection of its own; return the thread and what the call ends with."""
    ended = []

    def run():
        try:
            call()
            ended.append(None)
        except Exception as error:  # noqa: BLE001 -- looked at by the test
            ended.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread, ended


@pytest.mark.django_db(transaction=True)
class TestTwoAdminsAtOnce:
    """The second transaction begins before the first has ended."""

    def race(self, first, second):
        """Return what the second call ends with, which waits until the first one's transaction is committed."""
        with transaction.atomic():
            first()
            thread, ended = in_a_thread(second)
            thread.join(0.3)
            assert thread.is_alive(), ended
        thread.join(10)
        return ended[0]

    def test_one_promotion_wins(self, save, go_live):
        for weight in (0.7, 0.8, 0.9):
            go_live(save({"blend.dense": weight}).number)
        lost = self.race(lambda: go_live(1, live=3), lambda: go_live(2, live=3))
        assert isinstance(lost, VersionConflictError)
        assert states() == {1: "live", 2: "retired", 3: "retired"}

    def test_the_same_promotion_happens_once(self, save, go_live):
        save({"blend.dense": 0.7})
        lost = self.race(lambda: go_live(1), lambda: go_live(1))
        assert "live already" in str(lost)
        assert AuditEvent.objects.filter(action="preset.promoted").count() == 1

    def test_without_a_look_at_what_is_live_the_last_promotion_wins(self, save, go_live):
        for weight in (0.7, 0.8, 0.9):
            go_live(save({"blend.dense": weight}).number)
        assert self.race(lambda: go_live(1), lambda: go_live(2)) is None
        assert states() == {1: "retired", 2: "live", 3: "retired"}

    def test_one_first_draft_wins(self, save):
        lost = self.race(lambda: save({"blend.dense": 0.7}), lambda: save({"blend.dense": 0.8}, replaces=""))
        assert isinstance(lost, VersionConflictError)
        assert PresetVersion.objects.get().values == {"blend.dense": 0.7}

    def test_one_edit_of_a_draft_wins(self, save):
        seen = save({"blend.dense": 0.7}).fingerprint
        lost = self.race(
            lambda: save({"blend.dense": 0.8}, replaces=seen), lambda: save({"blend.dense": 0.9}, replaces=seen)
        )
        assert isinstance(lost, VersionConflictError)
        assert PresetVersion.objects.get().values == {"blend.dense": 0.8}
