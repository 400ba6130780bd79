"""Section sets, for admins: the list, one set with its sections, copy, reset, delete, and the sections of a set."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from django.contrib import messages
from django.forms import BoundField
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render

from corecube.errors import CoreCubeError
from corecube.http import HtmxHttpRequest
from explorer.components.forms import STALE
from explorer.components.preset_numbers import FieldRow, field_row, figure
from explorer.pages.evidence.forms import CopyForm, SectionForm, SectionSetForm
from explorer.viewer import admin_action, admin_page, viewer_of
from retrieval.errors import TunablesError, VersionConflictError
from retrieval.presets.consolidated.evidence.sections import Section, SectionSet
from retrieval.search import section_sets as services
from retrieval.search.evidence_runs import MAX_SUBJECT

_INVALID: Final = 422
_STEPS: Final = {"up": -1, "down": 1}


def _set_row(found: SectionSet) -> dict[str, Any]:
    shipped, edited = services.is_shipped(found.name), services.is_edited(found)
    state = ("edited" if edited else "default") if shipped else "custom"
    tone = {"edited": "warn", "custom": "good"}.get(state, "")
    return {"set": found, "state": state, "tone": tone, "is_shipped": shipped, "is_edited": edited}


def _section_lines(found: SectionSet, subject: str) -> Iterator[dict[str, Any]]:
    for section in found.sections:
        yield {
            "section": section,
            "query": section.query(subject or "{subject}"),
            "floors": f"{figure(section.score_floor)} / {figure(section.quality_floor)}",
            "required": tuple(_required(section)),
            # In addition to the defaults of the set.
            "never_recovered": tuple(it for it in section.never_recovered if it not in found.defaults.never_recovered),
        }


def _required(section: Section) -> Iterator[str]:
    for it in section.required:
        survivors = section.survivor_floors.get(it)
        after_cut = f", {survivors:,} after cut" if survivors else ""
        yield f"{it} (min. {section.quantity_floor(it):,}{after_cut})"


def _number_rows(form: SectionForm | SectionSetForm, section_set: SectionSet) -> Iterator[FieldRow]:
    """Yield the fields of a section's settings, each with its bounds and default.

    The default of a section comes from its set, that of a set is the shipped one.
    """
    defaults = section_set.defaults.numbers if isinstance(form, SectionForm) else {}
    for facts in Section.declared():
        yield field_row(form[facts.name], facts, defaults.get(facts.name, facts.default))


def _type_fields(name: str, role: BoundField, quantity: BoundField, survivors: BoundField) -> dict[str, Any]:
    errors = [str(error) for field in (role, quantity, survivors) for error in field.errors]
    return {"name": name, "role": role, "quantity": quantity, "survivors": survivors, "errors": errors}


@admin_page("GET", may_cache=True)
def sets(request: HtmxHttpRequest) -> HttpResponse:
    """List the section sets."""
    rows = [_set_row(it) for it in services.section_sets()]
    return render(request, "explorer/evidence/section_sets.html", {"rows": rows})


@admin_page("GET", "POST")
def one_set(request: HtmxHttpRequest, name: str) -> HttpResponse:
    """Show a section set; a POST saves its shared settings. Invalid input stays in the form."""
    found = services.section_set_named(name)
    form = SectionSetForm(request.POST or None, section_set=found)
    if form.is_valid() and _saves(request, form, {**found.to_mapping(), **form.values}):
        messages.success(request, "Section set saved.")
        return redirect("explorer:section_set", name=name)
    return _page(request, found, form)


def _saves(request: HtmxHttpRequest, form: SectionForm | SectionSetForm, mapping: Mapping[str, Any]) -> bool:
    """Save a set and return True; otherwise add the errors to the form."""
    try:
        services.save_section_set(mapping, actor=viewer_of(request), replaces=request.POST.get("replaces", ""))
    except TunablesError as error:
        form.add_problems(error.problems)
    except VersionConflictError:
        form.is_stale = True
        form.add_error(None, STALE)
    return not form.errors


def _status(form: SectionForm | SectionSetForm) -> int:
    if form.is_stale:
        return VersionConflictError.status
    return _INVALID if form.errors else 200


def _replaces(request: HtmxHttpRequest, form: SectionForm | SectionSetForm, found: SectionSet) -> str:
    """Return the fingerprint of the set that the form changes: of the current one after a conflict."""
    if form.is_bound and not form.is_stale:
        return request.POST.get("replaces", "")
    return services.fingerprint(found)


def _page(
    request: HtmxHttpRequest, found: SectionSet, form: SectionSetForm, copy: CopyForm | None = None
) -> HttpResponse:
    subject = request.GET.get("about", "")[:MAX_SUBJECT]
    context: dict[str, Any] = {
        "row": _set_row(found),
        "lines": list(_section_lines(found, subject)),
        "subject": subject,
        "max_subject": MAX_SUBJECT,
        "form": form,
        "numbers": list(_number_rows(form, found)),
        "copy": copy or CopyForm(initial={"title": f"{found.title} (copy)"}),
        "replaces": _replaces(request, form, found),
    }
    status = _INVALID if copy else _status(form)
    return render(request, "explorer/evidence/section_set.html", context, status=status)


@admin_action
def copy_set(request: HtmxHttpRequest, name: str) -> HttpResponse:
    """Copy a section set under another name."""
    found, form = services.section_set_named(name), CopyForm(request.POST)
    if form.is_valid():
        try:
            made = services.copy_section_set(name, **form.cleaned_data, actor=viewer_of(request))
        except TunablesError as error:
            form.add_error("new_name", "; ".join(f"{key.replace('_', ' ')} {it}" for key, it in error.problems.items()))
        except CoreCubeError as error:
            form.add_error("new_name", str(error))
        else:
            messages.success(request, f"{made.title} created. You can edit it now.")
            return redirect("explorer:section_set", name=made.name)
    return _page(request, found, SectionSetForm(section_set=found), form)


@admin_page("GET", "POST")
def reset_set(request: HtmxHttpRequest, name: str) -> HttpResponse:
    """Ask whether to reset a shipped set to its defaults; a POST does it."""
    found = services.section_set_named(name)
    if not services.is_edited(found):
        raise Http404
    if request.method == "POST":
        services.reset_section_set(name, actor=viewer_of(request))
        messages.success(request, f"{found.title} reset to its defaults.")
        return redirect("explorer:section_set", name=name)
    return _confirm(request, found, "Reset")


@admin_page("GET", "POST")
def delete_set(request: HtmxHttpRequest, name: str) -> HttpResponse:
    """Ask whether to delete a custom set; a POST does it."""
    found = services.section_set_named(name)
    if services.is_shipped(name):
        raise Http404
    if request.method == "POST":
        services.delete_section_set(name, actor=viewer_of(request))
        messages.success(request, f"{found.title} deleted.")
        return redirect("explorer:section_sets")
    return _confirm(request, found, "Delete")


def _confirm(request: HtmxHttpRequest, found: SectionSet, action: str) -> HttpResponse:
    context = {"row": _set_row(found), "action": action}
    return render(request, "explorer/evidence/section_set_confirm.html", context)


@admin_page("GET", "POST")
def new_section(request: HtmxHttpRequest, name: str) -> HttpResponse:
    """Add a section at the end of a set."""
    return _edited(request, services.section_set_named(name), None)


@admin_page("GET", "POST")
def edit_section(request: HtmxHttpRequest, name: str, section: str) -> HttpResponse:
    """Show a section's policy; a POST saves it, or with "preview" shows its query."""
    found = services.section_set_named(name)
    return _edited(request, found, services.section_named(found, section))


def _edited(request: HtmxHttpRequest, found: SectionSet, section: Section | None) -> HttpResponse:
    form = SectionForm(request.POST or None, section_set=found, section=section)
    is_valid, is_preview = form.is_valid(), "preview" in request.POST
    if is_valid and not is_preview and _saves(request, form, _with(found, section, form)):
        messages.success(request, f"{form.cleaned_data['title']} saved.")
        return redirect("explorer:section_set", name=found.name)
    return _section_page(request, form, is_preview=is_preview)


def _with(found: SectionSet, section: Section | None, form: SectionForm) -> dict[str, Any]:
    mapping = found.to_mapping()
    rows: Any = mapping["sections"]
    if section is None:
        return {**mapping, "sections": [*rows, form.values]}
    return {**mapping, "sections": [form.values if row["name"] == section.name else row for row in rows]}


def _section_page(request: HtmxHttpRequest, form: SectionForm, *, is_preview: bool) -> HttpResponse:
    subject = str(form.data.get("about", ""))[:MAX_SUBJECT]
    context = {
        "set": form.section_set,
        "edited": form.section,
        "form": form,
        "numbers": list(_number_rows(form, form.section_set)),
        "types": [
            _type_fields(it, form[f"role.{it}"], form[f"quantity_floors.{it}"], form[f"survivor_floors.{it}"])
            for it in form.source_types
        ],
        "subject": subject,
        "max_subject": MAX_SUBJECT,
        "preview": form.query if is_preview else "",
        "replaces": _replaces(request, form, form.section_set),
    }
    return render(request, "explorer/evidence/section.html", context, status=200 if is_preview else _status(form))


@admin_action
def change_section(request: HtmxHttpRequest, name: str, section: str) -> HttpResponse:
    """Move a section up or down in its set, or remove it."""
    found = services.section_set_named(name)
    services.section_named(found, section)
    mapping = found.to_mapping()
    wanted = {**mapping, "sections": _changed(mapping["sections"], section, request.POST.get("do", ""))}
    try:
        services.save_section_set(wanted, actor=viewer_of(request), replaces=request.POST.get("replaces", ""))
    except TunablesError:
        messages.error(request, "A section set needs at least one section. Delete the set instead.")
    except VersionConflictError as error:
        messages.error(request, str(error))
    return redirect("explorer:section_set", name=name)


def _changed(rows: Any, section: str, action: str) -> list[Any]:  # noqa: ANN401 -- JSON
    others = [row for row in rows if row["name"] != section]
    if action == "remove":
        return others
    if action not in _STEPS:
        raise Http404
    index = next(index for index, row in enumerate(rows) if row["name"] == section)
    others.insert(max(0, index + _STEPS[action]), rows[index])
    return others
