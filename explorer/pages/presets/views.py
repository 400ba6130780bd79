"""Presets, for admins: the live configuration, the draft and all versions."""

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from corecube.access import Principal
from corecube.errors import CoreCubeError
from corecube.http import HtmxHttpRequest
from explorer import wording
from explorer.components import preset_numbers
from explorer.components.forms import TunablesForm
from explorer.pages.evaluation.gates import gate_context
from explorer.pages.presets import effect
from explorer.viewer import admin_action, admin_page, errors_shown, viewer_of, whole_number
from retrieval.admin import preset_versions
from retrieval.errors import GateError, ReferenceVersionError, VersionConflictError
from retrieval.models import PresetVersion, QuestionSet
from retrieval.presets.catalog import PRESETS, preset_named
from retrieval.presets.preset import Preset
from retrieval.search.configuration import SHIPPED, configuration_of

_LIVE = PresetVersion.Status.LIVE
_DRAFT = PresetVersion.Status.DRAFT


@admin_page("GET", may_cache=True)
def presets(request: HtmxHttpRequest) -> HttpResponse:
    """List the presets with their live version and draft."""
    current = PresetVersion.objects.filter(status__in=(_LIVE, _DRAFT)).select_related("promoted_by")
    found = {(version.preset, version.status): version for version in current}
    now = timezone.now()
    rows = [
        preset_numbers.preset_row(it, live=found.get((it.name, _LIVE)), draft=found.get((it.name, _DRAFT)), now=now)
        for it in PRESETS.values()
    ]
    return render(request, "explorer/presets/presets.html", {"rows": rows})


@admin_page("GET", "POST")
def preset(request: HtmxHttpRequest, name: str) -> HttpResponse:
    """Show a preset's configuration; a POST saves the draft, or shows the form again with errors.

    Of a reference version it shows the document's lines.
    """
    chosen = _preset(name)
    if chosen.lines:
        return _reference_page(request, chosen)
    if request.method == "GET":
        return _page(request, chosen, None, 200)
    form = TunablesForm(request.POST, defaults=chosen.defaults)
    if not form.is_valid():
        return _page(request, chosen, form, 422, replaces=request.POST.get("replaces", ""))
    if _is_live(chosen, form):
        messages.info(request, "Nothing differs from the live version, so no draft was saved.")
        return redirect("explorer:preset", name=name)
    try:
        preset_versions.save_draft(
            preset=chosen,
            values=form.numbers,
            note=form.cleaned_data["note"],
            actor=viewer_of(request),
            replaces=request.POST.get("replaces", ""),
        )
    except VersionConflictError as error:
        form.add_error(None, f"{error} Your changes are still here. Saving again replaces the other draft.")
        return _page(request, chosen, form, error.status)
    messages.success(request, "The draft was saved. Searches use it after you promote it.")
    return _measured(request, chosen) if "measure" in request.POST else redirect("explorer:preset", name=name)


def _is_live(chosen: Preset, form: TunablesForm) -> bool:
    """Return whether there is no draft, and the form has the settings of the live version."""
    has_draft = PresetVersion.objects.filter(preset=chosen.name, status=_DRAFT).exists()
    return not has_draft and chosen.defaults.with_values(form.numbers) == configuration_of(chosen).config


def _measured(request: HtmxHttpRequest, chosen: Preset) -> HttpResponse:
    """Queue the runs that show the draft's effect, and return to its page."""
    with errors_shown(request):
        effect.measure_draft(chosen, request.POST.get("set", ""), Principal(viewer_of(request)))
    query = urlencode({"set": request.POST.get("set", "")})
    return redirect(f"{reverse('explorer:preset', args=[chosen.name])}?{query}")


@admin_page("GET")
def preset_effect(request: HtmxHttpRequest, name: str) -> HttpResponse:
    """Show the effect of the draft on a question set; the page asks again while a run is open."""
    context = _effect(request, _preset(name), effect.question_sets())
    return render(request, "explorer/presets/_effect.html", context)


def _effect(request: HtmxHttpRequest, chosen: Preset, sets: Sequence[QuestionSet]) -> dict[str, Any]:
    principal = Principal(viewer_of(request))
    question_set = effect.chosen_set(sets, chosen, request.GET.get("set", ""), principal)
    return effect.effect_context(chosen, question_set, principal)


@admin_action
def discard_draft(request: HtmxHttpRequest, name: str) -> HttpResponse:
    """Delete the draft."""
    with errors_shown(request):
        preset_versions.discard_draft(preset=_preset(name), actor=viewer_of(request))
        messages.success(request, "The draft was discarded.")
    return redirect("explorer:preset", name=name)


@admin_page("GET", "POST")
def promote(request: HtmxHttpRequest, name: str, number: int) -> HttpResponse:
    """Show the changes by promoting a version; a POST promotes it, if nothing has changed since."""
    chosen = _preset(name)
    if request.method == "POST":
        return _promoted(request, chosen, number)
    live = configuration_of(chosen)
    version = PresetVersion.objects.filter(preset=chosen.name, number=number).first()
    if (version is None and number != SHIPPED) or number == live.number:
        raise Http404
    context = {
        "preset": chosen,
        "title": wording.preset_title(chosen.name),
        "number": number,
        "label": preset_numbers.version_label(number),
        "live": live.number,
        "live_label": preset_numbers.version_label(live.number),
        "fingerprint": version.fingerprint if version else "",
        "note": version.note if version else "",
        "changes": preset_numbers.change_rows(live.config, preset_numbers.stored_config(chosen, version)),
        **(_effect(request, chosen, effect.question_sets()) if version and version.status == _DRAFT else {}),
        **gate_context(chosen, version, Principal(viewer_of(request))),
    }
    return render(request, "explorer/presets/preset_promote.html", context)


def _promoted(request: HtmxHttpRequest, chosen: Preset, number: int) -> HttpResponse:
    try:
        preset_versions.promote(
            preset=chosen,
            number=number,
            actor=viewer_of(request),
            # No version has this number, so an invalid value is a conflict.
            live=whole_number(request.POST.get("live", ""), -1, digits=10),
            fingerprint=request.POST.get("fingerprint", ""),
            reason=request.POST.get("reason", ""),
        )
    except GateError as error:
        messages.error(request, str(error))
        return redirect("explorer:promote", name=chosen.name, number=number)
    except CoreCubeError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, f"All searches now use {preset_numbers.version_label(number)}.")
    return redirect("explorer:preset", name=chosen.name)


def _preset(name: str) -> Preset:
    if name not in PRESETS:
        raise Http404
    return PRESETS[name]


def _reference_page(request: HtmxHttpRequest, chosen: Preset) -> HttpResponse:
    """Render the lines of a reference version; a POST changes nothing and says so."""
    tuned = preset_named(chosen.base)
    context = {
        "preset": chosen,
        "title": wording.preset_title(chosen.name),
        "tuned": tuned,
        "rows": list(preset_numbers.reference_rows(chosen)),
        "changes": preset_numbers.change_rows(tuned.defaults, chosen.defaults),
    }
    if request.method == "GET":
        return render(request, "explorer/presets/preset_reference.html", context)
    error = ReferenceVersionError()
    messages.error(request, str(error))
    return render(request, "explorer/presets/preset_reference.html", context, status=error.status)


def _page(
    request: HtmxHttpRequest, chosen: Preset, form: TunablesForm | None, status: int, *, replaces: str | None = None
) -> HttpResponse:
    """Render a preset's page. Without a form, it shows the draft or else the live configuration."""
    versions = list(PresetVersion.objects.filter(preset=chosen.name).select_related("created_by", "promoted_by"))
    draft = next((version for version in versions if version.status == _DRAFT), None)
    replaced = next((version.replaced for version in versions if version.status == _LIVE), None)
    live = configuration_of(chosen)
    edited = preset_numbers.stored_config(chosen, draft) if draft else live.config
    form = form or TunablesForm(
        defaults=chosen.defaults, initial={**edited.values(), "note": draft.note if draft else ""}
    )
    fingerprint = draft.fingerprint if draft else ""
    sets = effect.question_sets()
    sections = list(preset_numbers.field_sections(form, live))
    context: dict[str, Any] = {
        "title": wording.preset_title(chosen.name),
        "question_sets": sets,
        **_effect(request, chosen, sets),
        "preset": chosen,
        "live": live,
        "live_label": preset_numbers.version_label(live.number),
        "rollback_label": "" if replaced is None else preset_numbers.version_label(replaced),
        "draft": draft,
        "changes": preset_numbers.change_rows(live.config, edited),
        "replaces": fingerprint if replaces is None else replaces,
        "form": form,
        "sections": sections,
        "settings_total": sum(len(it.rows) for it in sections),
        "history": list(preset_numbers.version_rows(versions, timezone.now())),
    }
    return render(request, "explorer/presets/preset.html", context, status=status)
