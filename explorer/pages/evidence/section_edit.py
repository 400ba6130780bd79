"""The sections of a set, for admins: add, edit, move and remove."""

from typing import Any, Final

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from corecube.http import HtmxHttpRequest
from explorer.components.edit_form import STALE
from explorer.pages.evidence.forms import SectionForm, add_problems
from explorer.pages.evidence.section_set_panels import number_rows, type_fields
from explorer.pages.evidence.section_sets import INVALID
from explorer.viewer import admins_only, viewer_of
from retrieval.errors import TunablesError, VersionConflictError
from retrieval.presets.consolidated.evidence.section_set import SectionSet
from retrieval.presets.consolidated.evidence.sections import Section
from retrieval.search.evidence_runs import MAX_SUBJECT
from retrieval.search.section_sets import fingerprint, save_section_set, section_named, section_set_named

_STEPS: Final = {"up": -1, "down": 1}


@require_http_methods(["GET", "POST"])
@admins_only
@never_cache
def new_section(request: HtmxHttpRequest, name: str) -> HttpResponse:
    """Add a section at the end of a set."""
    return _edited(request, section_set_named(name), None)


@require_http_methods(["GET", "POST"])
@admins_only
@never_cache
def edit_section(request: HtmxHttpRequest, name: str, section: str) -> HttpResponse:
    """Show a section's policy; a POST saves it, or with "preview" shows its query."""
    found = section_set_named(name)
    return _edited(request, found, section_named(found, section))


def _edited(request: HtmxHttpRequest, found: SectionSet, section: Section | None) -> HttpResponse:
    if request.method == "GET":
        return _page(request, SectionForm(section_set=found, section=section))
    form, replaces = SectionForm(request.POST, section_set=found, section=section), request.POST.get("replaces", "")
    is_valid = form.is_valid()
    if "preview" in request.POST:
        return _page(request, form, replaces=replaces)
    if not is_valid:
        return _page(request, form, status=INVALID, replaces=replaces)
    try:
        save_section_set(_with(found, section, form), actor=viewer_of(request), replaces=replaces)
    except TunablesError as error:
        add_problems(form, error.problems, {})
        return _page(request, form, status=INVALID, replaces=replaces)
    except VersionConflictError as error:
        form.add_error(None, STALE)
        return _page(request, form, status=error.status)
    messages.success(request, f"{form.cleaned_data['title']} saved.")
    return redirect("explorer:section_set", name=found.name)


def _with(found: SectionSet, section: Section | None, form: SectionForm) -> dict[str, Any]:
    """Return a set's mapping with one section from the form."""
    mapping = found.to_mapping()
    rows: Any = mapping["sections"]
    if section is None:
        return {**mapping, "sections": [*rows, form.values]}
    return {**mapping, "sections": [form.values if row["name"] == section.name else row for row in rows]}


def _page(
    request: HtmxHttpRequest, form: SectionForm, *, status: int = 200, replaces: str | None = None
) -> HttpResponse:
    subject = str(form.data.get("about", ""))[:MAX_SUBJECT]
    context = {
        "section": "section_sets",
        "set": form.section_set,
        "edited": form.section,
        "form": form,
        "numbers": list(number_rows(form, form.section_set)),
        "types": list(type_fields(form)),
        "subject": subject,
        "max_subject": MAX_SUBJECT,
        "preview": form.query if "preview" in request.POST else "",
        "replaces": fingerprint(form.section_set) if replaces is None else replaces,
    }
    return render(request, "explorer/evidence/section.html", context, status=status)


@require_POST
@admins_only
def change_section(request: HtmxHttpRequest, name: str, section: str) -> HttpResponse:
    """Move a section up or down in its set, or remove it."""
    found = section_set_named(name)
    section_named(found, section)
    mapping = found.to_mapping()
    wanted = {**mapping, "sections": _changed(mapping["sections"], section, request.POST.get("do", ""))}
    try:
        save_section_set(wanted, actor=viewer_of(request), replaces=request.POST.get("replaces", ""))
    except TunablesError:
        messages.error(request, "A section set needs at least one section. Delete the set instead.")
    except VersionConflictError as error:
        messages.error(request, str(error))
    return redirect("explorer:section_set", name=name)


def _changed(rows: Any, section: str, action: str) -> list[Any]:  # noqa: ANN401 -- JSON
    """Return the sections' rows with one moved by one position, or without it."""
    others = [row for row in rows if row["name"] != section]
    if action == "remove":
        return others
    if action not in _STEPS:
        raise Http404
    index = next(index for index, row in enumerate(rows) if row["name"] == section)
    others.insert(max(0, index + _STEPS[action]), rows[index])
    return others
