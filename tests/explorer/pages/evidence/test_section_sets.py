"""Section sets, for admins: their list, one set, its sections, copies, resets."""

import pytest
from django.test import Client

from corecube.models import AuditEvent
from retrieval.models import StoredSectionSet
from retrieval.presets.consolidated.evidence.section_reading import shipped
from retrieval.presets.consolidated.evidence.sections import NUMBERS, Section
from retrieval.search.section_sets import copy_section_set, fingerprint, is_edited, section_set_named

REPORT = shipped("report")
PAGE = "/section-sets/report/"
SECTION = f"{PAGE}sections/facts_and_figures/"
PAGES = ["/section-sets/", PAGE, f"{PAGE}new-section/", SECTION]
CHANGES = [PAGE, SECTION, f"{PAGE}new-section/", f"{SECTION}change/", f"{PAGE}copy/"]


@pytest.fixture
def browse(people):
    """Return a client that one of the cast has signed in with; these pages need no documents."""

    def client(name):
        signed_in = Client()
        signed_in.force_login(people[name])
        return signed_in

    return client


@pytest.fixture
def alice(browse):
    return browse("alice")


def sent(section=None, found=None, **changes):
    """Return what the form of a section sends, some of it changed; two underscores stand for a dot."""
    found = found or section_set_named("report")
    section = found.section(section or "facts_and_figures")
    fields = {name: getattr(section, name) for name in ("title", "template", "hint", *NUMBERS)}
    for role in ("required", "optional", "never_recovered"):
        fields |= {f"role.{it}": role for it in getattr(section, role)}
    for name in ("quantity_floors", "survivor_floors"):
        fields |= {f"{name}.{it}": count for it, count in getattr(section, name).items()}
    changed = {name.replace("__", "."): value for name, value in changes.items()}
    return {**fields, "replaces": fingerprint(found), **changed}


def common(found=None, **changes):
    """Return what the form of a set sends."""
    found = found or section_set_named("report")
    lines = [": ".join(filter(None, (it.name, ", ".join(it.also)))) for it in found.source_types]
    fields = {"title": found.title, "source_types": "\r\n".join(lines), **found.defaults.numbers}
    fields |= {"never_recovered": ", ".join(found.defaults.never_recovered), "replaces": fingerprint(found)}
    return {**fields, **changes}


def order():
    return [it.name for it in section_set_named("report").sections]


@pytest.mark.parametrize("path", PAGES)
def test_an_admin_sees_it(alice, path):
    assert alice.get(path).status_code == 200


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("name", ["bob", "charlie"])
def test_for_anyone_else_it_does_not_exist(browse, path, name):
    assert browse(name).get(path).status_code == 404


@pytest.mark.parametrize("path", [*PAGES[1:], *CHANGES])
def test_a_stranger_is_asked_to_sign_in(db, client, path):
    assert client.post(path).headers["Location"].startswith("/login/")


@pytest.mark.parametrize("path", CHANGES)
@pytest.mark.parametrize("name", ["bob", "charlie"])
def test_nobody_else_changes_anything(browse, path, name):
    assert browse(name).post(path, sent(title="Mine", do="remove", new_name="mine")).status_code == 404
    assert not StoredSectionSet.objects.exists()
    assert not AuditEvent.objects.exists()


@pytest.mark.parametrize(
    "path",
    ["/section-sets/nope/", f"{PAGE}sections/nope/", f"{PAGE}reset/", f"{PAGE}delete/", "/section-sets/nope/reset/"],
)
def test_what_there_is_not_is_not_found(alice, path):
    assert alice.get(path).status_code == 404


def test_the_list_says_what_was_changed(alice, people):
    alice.post(SECTION, sent(keep="12"))
    copy_section_set("report", new_name="mine", title="Mine", actor=people["alice"])
    states = {
        row["set"].name: (row["state"], len(row["set"].sections)) for row in alice.get("/section-sets/").context["rows"]
    }
    assert states == {"property_memo": ("default", len(shipped("property_memo").sections)),
                      "report": ("edited", 8), "mine": ("custom", 8)}  # fmt: skip


def test_a_sections_numbers_have_their_bounds_and_help(alice):
    text = alice.get(SECTION).content.decode()
    for facts in Section.declared():
        assert f'name="{facts.name}"' in text
        assert facts.help in text
    assert "default 80, 8 to 200; higher is slower" in text


def test_the_default_of_a_section_is_its_sets_number_and_that_of_the_set_the_shipped_one(alice):
    alice.post(PAGE, common(keep="11"))
    assert "default 11, 1 to 100" in alice.get(SECTION).content.decode()
    text = alice.get(PAGE).content.decode()
    assert 'name="keep" value="11"' in text
    assert "default 8, 1 to 100" in text


def test_saving_what_was_not_changed_leaves_it_as_it_came(alice):
    for section in REPORT.sections:
        assert alice.post(f"{PAGE}sections/{section.name}/", sent(section.name)).status_code == 302
    assert alice.post(PAGE, common()).status_code == 302
    assert section_set_named("report") == REPORT
    assert not StoredSectionSet.objects.exists()


def test_a_section_is_saved_and_audited(alice):
    alice.post(SECTION, sent(keep="20", role__email="optional", survivor_floors__excel="5"))
    section = section_set_named("report").section("facts_and_figures")
    assert (section.keep, section.survivor_floors, section.optional) == (20, {"excel": 5}, ("pdf", "json", "email"))
    event = AuditEvent.objects.get()
    assert (event.action, event.subject, event.details["sections"]) == (
        "section_set.saved",
        "report",
        ["facts_and_figures"],
    )


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"score_floor": "1.5"}, "score_floor"),
        ({"complexity": "99"}, "complexity"),
        ({"keep": "x"}, "keep"),
        ({"template": "{subject} {owner}"}, "template"),
        ({"template": "{subject"}, "template"),
        ({"title": ""}, "title"),
        ({"hint": "nope"}, "hint"),
        ({"quantity_floors.pdf": "2"}, "quantity_floors.pdf"),
        ({"survivor_floors.excel": "17"}, "survivor_floors.excel"),
        ({"quantity_floors.excel": "81"}, "quantity_floors.excel"),
        ({"role.excel": "nope"}, "role.excel"),
    ],
)
def test_what_is_wrong_stands_at_its_field(alice, changes, field):
    response = alice.post(SECTION, {**sent(), **changes})
    assert response.status_code == 422
    assert field in response.context["form"].errors
    assert not StoredSectionSet.objects.exists()


def test_what_somebody_else_changed_meanwhile_is_not_overwritten(alice):
    mine = sent(keep="11")
    alice.post(SECTION, sent(keep="12"))
    response = alice.post(SECTION, mine)
    assert response.status_code == 409
    assert "Someone else has changed this in the meantime." in response.content.decode()
    assert section_set_named("report").section("facts_and_figures").keep == 12
    assert alice.post(SECTION, {**mine, "replaces": response.context["replaces"]}).status_code == 302
    assert section_set_named("report").section("facts_and_figures").keep == 11


def test_a_preview_shows_the_query_and_saves_nothing(alice):
    typed = sent(template="{subject}  costs by year", preview="1", about="Tallow Quay", keep="x")
    response = alice.post(SECTION, typed)
    assert (response.status_code, response.context["preview"]) == (200, "Tallow Quay costs by year")
    assert alice.post(SECTION, {**typed, "template": "{"}).context["preview"] == ""
    assert not StoredSectionSet.objects.exists()
    lines = alice.get(PAGE, {"about": "Tallow Quay"}).context["lines"]
    assert lines[0]["query"] == "Tallow Quay overview purpose background scope summary"


def test_sections_are_added_moved_and_removed(alice):
    first, second = order()[:2]
    alice.post(f"{PAGE}new-section/", {**sent(title="Mood", template="{subject} mood"), "name": "mood"})
    assert order()[-1] == "mood"
    for deed in ("up", "up", "down"):
        alice.post(f"{PAGE}sections/mood/change/", {"do": deed, "replaces": fingerprint(section_set_named("report"))})
    assert order()[-2] == "mood"
    moved = {"do": "up", "replaces": fingerprint(section_set_named("report"))}
    alice.post(f"{PAGE}sections/{first}/change/", moved)
    assert order()[:2] == [first, second]
    alice.post(f"{PAGE}sections/mood/change/", {"do": "remove", "replaces": moved["replaces"]})
    assert section_set_named("report") == REPORT
    assert alice.post(f"{PAGE}sections/{first}/change/", {"do": "shuffle"}).status_code == 404


def test_a_move_of_what_was_changed_meanwhile_is_refused(alice):
    stale = fingerprint(REPORT)
    alice.post(SECTION, sent(keep="12"))
    page = alice.post(f"{SECTION}change/", {"do": "remove", "replaces": stale}, follow=True)
    assert "has changed the section set" in page.content.decode()
    assert "facts_and_figures" in order()


@pytest.mark.parametrize("name", ["facts_and_figures", "Bad name", ""])
def test_a_name_that_is_taken_or_cannot_be_one_is_refused(alice, name):
    response = alice.post(f"{PAGE}new-section/", {**sent(), "name": name})
    assert response.status_code == 422
    assert response.context["form"].errors
    assert not StoredSectionSet.objects.exists()


def test_what_the_sections_have_in_common_is_saved(alice):
    lines = "excel: csv, ods\npdf\ndocx: rtf, epub\nmarkdown: rst\npptx\nemail\nhtml\njson\ncode\ntext"
    assert alice.post(PAGE, common(source_types=lines, keep="11", title="Our report")).status_code == 302
    found = section_set_named("report")
    assert (found.title, found.stored_as("excel"), found.defaults.numbers["keep"]) == (
        "Our report",
        ("excel", "csv", "ods"),
        11,
    )
    # It said nothing of its own, and follows the default.
    assert found.section("how_it_works").keep == 11


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"source_types": "Excel sheet"}, None),
        ({"source_types": "excel\nexcel"}, None),
        ({"source_types": ""}, "source_types"),
        ({"never_recovered": "nope"}, None),
        ({"keep": "0"}, "keep"),
        ({"title": ""}, "title"),
    ],
)
def test_what_is_wrong_with_a_set_is_told(alice, changes, field):
    response = alice.post(PAGE, common(**changes))
    assert response.status_code == 422
    assert response.context["form"].errors.get(field or "__all__")
    assert not StoredSectionSet.objects.exists()


def test_a_set_is_copied_edited_and_deleted(alice):
    assert (
        alice.post(f"{PAGE}copy/", {"new_name": "mine", "title": "Mine"}).headers["Location"] == "/section-sets/mine/"
    )
    assert section_set_named("mine").sections == REPORT.sections
    for name in ("mine", "report", "Not a name"):
        assert alice.post(f"{PAGE}copy/", {"new_name": name, "title": "Mine"}).status_code == 422
    assert alice.get("/section-sets/mine/delete/").status_code == 200
    assert alice.post("/section-sets/mine/delete/").headers["Location"] == "/section-sets/"
    assert not StoredSectionSet.objects.exists()
    assert [it.action for it in AuditEvent.objects.order_by("pk")] == ["section_set.copied", "section_set.deleted"]


def test_a_shipped_set_is_reset_and_never_deleted(alice):
    alice.post(SECTION, sent(keep="12"))
    assert is_edited(section_set_named("report"))
    assert alice.post(f"{PAGE}delete/").status_code == 404
    assert alice.get(f"{PAGE}reset/").status_code == 200
    alice.post(f"{PAGE}reset/")
    assert section_set_named("report") == REPORT
