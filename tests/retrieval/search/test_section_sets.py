"""Section sets in the database: edited, copied, deleted, reset; never lost to an edit that saw something else."""

import threading

import pytest
from django.db import connection

from corecube.errors import ConflictError
from corecube.models import AuditEvent, User
from retrieval.errors import TunablesError, UnknownSectionError, UnknownSectionSetError, VersionConflictError
from retrieval.models import StoredSectionSet
from retrieval.presets.consolidated.evidence.section_reading import SHIPPED, read_section_set, shipped
from retrieval.search.section_sets import (
    DEFAULT_SECTION_SET,
    copy_section_set,
    delete_section_set,
    fingerprint,
    is_edited,
    reset_section_set,
    save_section_set,
    section_named,
    section_set_named,
    section_sets,
)
from tests.section_edits import written_with


@pytest.fixture
def alice(people):
    return people["alice"]


def edited(section="overview", **values):
    return written_with(section_set_named("report"), section, values)


def save(written, actor, name="report"):
    return save_section_set(written, actor=actor, replaces=fingerprint(section_set_named(name)))


def own(name="audit", **more):
    return {**shipped("report").to_mapping(), "name": name, "title": "Audit", **more}


def test_without_edits_there_are_the_shipped_ones_as_they_came(db):
    assert section_sets() == tuple(shipped(name) for name in SHIPPED)
    assert section_set_named(DEFAULT_SECTION_SET) == shipped("report")
    assert not any(is_edited(it) for it in section_sets())


def test_an_edit_serves_under_the_shipped_name(alice):
    save(edited(score_floor=0.3), alice)
    found = section_set_named("report")
    assert section_named(found, "overview").score_floor == 0.3
    assert is_edited(found)
    assert [it.name for it in section_sets()] == list(SHIPPED)
    assert found in section_sets()
    assert shipped("report").section("overview").score_floor == 0.18


def test_what_an_edit_does_not_name_stays(alice):
    save(edited(score_floor=0.3), alice)
    before, after = shipped("report"), section_set_named("report")
    assert [it for it in after.sections if it.name != "overview"] == list(before.sections[1:])


def test_own_sets_stand_behind_the_shipped_ones_by_name(alice):
    save_section_set(own("zeta"), actor=alice)
    save_section_set(own("alpha"), actor=alice)
    assert [it.name for it in section_sets()] == [*SHIPPED, "alpha", "zeta"]
    assert not is_edited(section_set_named("alpha"))


def test_each_edit_has_another_fingerprint(alice):
    seen = {fingerprint(section_set_named("report"))}
    for floor in (0.3, 0.31):
        save(edited(score_floor=floor), alice)
        seen.add(fingerprint(section_set_named("report")))
    assert len(seen) == 3


def test_an_edit_of_what_somebody_changed_meanwhile_is_refused(alice):
    seen = fingerprint(section_set_named("report"))
    save(edited(score_floor=0.3), alice)
    with pytest.raises(VersionConflictError):
        save_section_set(edited(score_floor=0.4), actor=alice, replaces=seen)
    assert section_named(section_set_named("report"), "overview").score_floor == 0.3


def test_a_new_set_does_not_overwrite_one_that_is_there(alice):
    save_section_set(own(), actor=alice)
    for name in ("audit", "report"):
        with pytest.raises(VersionConflictError):
            save_section_set(own(name, title="Other"), actor=alice)


def test_an_edit_of_what_was_deleted_meanwhile_is_refused(alice):
    seen = fingerprint(save_section_set(own(), actor=alice))
    delete_section_set("audit", actor=alice)
    with pytest.raises(VersionConflictError):
        save_section_set(own(title="Other"), actor=alice, replaces=seen)


@pytest.mark.parametrize(
    ("section", "values", "problem"),
    [
        ("overview", {"score_floor": 1.5}, ("overview.score_floor", "must be between 0.0 and 1.0")),
        ("overview", {"complexity": "many"}, ("overview.complexity", "must be a number")),
        ("overview", {"depth": 3}, ("overview.depth", "is unknown")),
    ],
)
def test_what_does_not_fit_is_named_with_its_bounds_and_nothing_is_saved(alice, section, values, problem):
    with pytest.raises(TunablesError) as error:
        save(edited(section, **values), alice)
    assert error.value.problems[problem[0]] == problem[1]
    assert not StoredSectionSet.objects.exists()


def test_texts_are_kept_as_postgresql_can_hold_them(alice):
    save(edited(title="Over\0view", template="{subject}\ud800 overview"), alice)
    section = section_named(section_set_named("report"), "overview")
    assert (section.title, section.template) == ("Over view", "{subject}? overview")


@pytest.mark.parametrize("name", ["title", "template"])
def test_a_text_of_which_nothing_is_left_is_refused(alice, name):
    with pytest.raises(TunablesError) as error:
        save(edited(**{name: "\0"}), alice)
    assert set(error.value.problems) == {f"overview.{name}"}


def test_saving_the_shipped_numbers_is_no_edit(alice):
    save(edited(score_floor=0.3), alice)
    save(shipped("report").to_mapping(), alice)
    assert not StoredSectionSet.objects.exists()
    assert not is_edited(section_set_named("report"))


def test_a_reset_puts_the_shipped_numbers_back(alice):
    save(edited(score_floor=0.3), alice)
    assert reset_section_set("report", actor=alice) == shipped("report")
    assert section_set_named("report") == shipped("report")
    assert [it.action for it in AuditEvent.objects.order_by("pk")][-1] == "section_set.reset"


def test_only_a_shipped_set_is_reset_and_only_an_own_one_deleted(alice):
    save_section_set(own(), actor=alice)
    with pytest.raises(UnknownSectionSetError):
        reset_section_set("audit", actor=alice)
    with pytest.raises(ConflictError):
        delete_section_set("report", actor=alice)
    delete_section_set("audit", actor=alice)
    with pytest.raises(UnknownSectionSetError):
        delete_section_set("audit", actor=alice)
    with pytest.raises(UnknownSectionSetError):
        section_set_named("audit")


def test_a_copy_has_the_edited_numbers_under_another_name(alice):
    save(edited(score_floor=0.3), alice)
    copy = copy_section_set("report", new_name="audit", title="Audit", actor=alice)
    assert (copy.name, copy.title) == ("audit", "Audit")
    assert copy.sections == section_set_named("report").sections
    assert section_set_named("audit") == copy


@pytest.mark.parametrize("taken", ["report", "property_memo", "audit"])
def test_a_copy_takes_no_name_that_is_taken(alice, taken):
    save_section_set(own(), actor=alice)
    with pytest.raises(ConflictError):
        copy_section_set("report", new_name=taken, title="Copy", actor=alice)


@pytest.mark.parametrize("name", ["", "Audit", "a-b", "x" * 61, "\0"])
def test_a_copy_takes_no_name_that_cannot_be_any(alice, name):
    with pytest.raises(TunablesError):
        copy_section_set("report", new_name=name, title="Copy", actor=alice)


@pytest.mark.parametrize("name", ["nope", "", "\0", "\ud800", "x" * 5000])
def test_an_unknown_set_is_not_found(db, name):
    with pytest.raises(UnknownSectionSetError):
        section_set_named(name)


def test_an_unknown_section_is_not_found(db):
    with pytest.raises(UnknownSectionError):
        section_named(section_set_named("report"), "nope")
    with pytest.raises(UnknownSectionError):
        written_with(section_set_named("report"), "nope", {})


def test_every_change_is_in_the_audit_log_without_any_text(alice):
    save(edited(template="{subject} zanzibar"), alice)
    copy_section_set("report", new_name="audit", title="Secret", actor=alice)
    delete_section_set("audit", actor=alice)
    events = list(AuditEvent.objects.order_by("pk"))
    assert [(it.action, it.subject) for it in events] == [
        ("section_set.saved", "report"),
        ("section_set.copied", "audit"),
        ("section_set.deleted", "audit"),
    ]
    assert events[0].details["sections"] == ["overview"]
    assert "zanzibar" not in str([it.details for it in events])


def test_a_stored_edit_that_no_longer_fits_leaves_the_shipped_one(alice):
    written = edited(score_floor=7)
    StoredSectionSet.objects.create(name="report", written=written)
    StoredSectionSet.objects.create(name="audit", written={"name": "audit"})
    assert section_sets() == tuple(shipped(name) for name in SHIPPED)
    assert section_set_named("report") == shipped("report")
    with pytest.raises(UnknownSectionSetError):
        section_set_named("audit")
    save_section_set(own(), actor=alice)
    assert section_set_named("audit") == read_section_set(own())


@pytest.mark.django_db(transaction=True)
def test_of_two_who_save_a_new_set_at_once_one_is_told():
    alice = User.objects.create_user("alice")
    outcomes, ready = [], threading.Barrier(2)

    def add(title):
        ready.wait()
        try:
            save_section_set(own(title=title), actor=alice)
            outcomes.append("saved")
        except VersionConflictError:
            outcomes.append("told")
        finally:
            connection.close()

    threads = [threading.Thread(target=add, args=(title,)) for title in ("One", "Two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["saved", "told"]
