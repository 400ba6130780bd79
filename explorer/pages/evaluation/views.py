"""Question sets, for admins: cases, evaluation of presets, import and export of judgments."""

from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from corecube.access import Principal, scope_for
from corecube.errors import CoreCubeError, InvalidRequestError
from corecube.http import HtmxHttpRequest
from explorer.pages.evaluation.panels import case_rows, result_panel, set_rows
from explorer.viewer import admin_page, admins_only, viewer_of, wants_fragment
from retrieval.evaluation.qrels import MAX_CHARACTERS, csv_of, import_lines, qrels_of, read_lines
from retrieval.evaluation.question_set import measure_cases
from retrieval.evaluation.question_sets import delete_case, delete_set, mark_case, save_case, set_named
from retrieval.models import Case, QuestionSet
from retrieval.presets.catalog import DEFAULT_PRESET, PRESETS

#: The maximum number of cases that the page evaluates.
MAX_MEASURED: Final = 100
_EXPORTS: Final = {"csv": (csv_of, "text/csv"), "qrels": (qrels_of, "text/plain")}


@admin_page("GET", "POST")
def question_sets(request: HtmxHttpRequest) -> HttpResponse:
    """List the question sets; a POST creates one."""
    viewer = viewer_of(request)
    if request.method == "POST":
        try:
            made = set_named(request.POST.get("name", ""), actor=viewer)
        except CoreCubeError as error:
            messages.error(request, str(error))
            return redirect("explorer:judgments")
        return redirect("explorer:question_set", slug=made.slug)
    context = {"section": "judgments", "rows": set_rows(scope_for(Principal(viewer)))}
    return render(request, "explorer/evaluation/judgments.html", context)


@admin_page("GET", "POST")
def question_set(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Show a set's cases; a POST adds one."""
    found = get_object_or_404(QuestionSet, slug=slug)
    if request.method == "POST":
        is_answerable = request.POST.get("answerable", "yes") == "yes"
        try:
            save_case(found, request.POST.get("query", ""), actor=viewer_of(request), is_answerable=is_answerable)
        except CoreCubeError as error:
            messages.error(request, str(error))
        return redirect("explorer:question_set", slug=slug)
    return render(request, "explorer/evaluation/question_set.html", _page(request, found))


def _page(request: HtmxHttpRequest, found: QuestionSet) -> dict[str, Any]:
    scope = scope_for(Principal(viewer_of(request)))
    return {
        "section": "judgments",
        "question_set": found,
        "cases": case_rows(found, scope),
        "presets": list(PRESETS),
        "max_measured": MAX_MEASURED,
    }


@admin_page("POST")
def measures(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Run the first cases of a set with a preset, and show the measures with the viewer's access."""
    found = get_object_or_404(QuestionSet, slug=slug)
    preset = request.POST.get("preset", DEFAULT_PRESET)
    cases = list(found.cases.all()[:MAX_MEASURED])
    context: dict[str, Any] = {"case_count": found.cases.count(), "max_measured": MAX_MEASURED, "question_set": found}
    status = 200
    try:
        context["result"] = result_panel(measure_cases(cases, preset=preset, principal=Principal(viewer_of(request))))
    except CoreCubeError as error:
        context["failure"], status = str(error), error.status
    if wants_fragment(request):
        return render(request, "explorer/evaluation/_set_result.html", context, status=status)
    page = {**_page(request, found), "chosen_preset": preset}
    return render(request, "explorer/evaluation/question_set.html", {**page, **context}, status=status)


@require_POST
@admins_only
def change_case(request: HtmxHttpRequest, case_id: UUID) -> HttpResponse:
    """Mark a case as answerable or not, or delete it."""
    case = get_object_or_404(Case.objects.select_related("question_set"), pk=case_id)
    action = request.POST.get("action", "")
    if action == "delete":
        delete_case(case, actor=viewer_of(request))
    elif action in {"answerable", "unanswerable"}:
        mark_case(case, is_answerable=action == "answerable", actor=viewer_of(request))
    else:
        raise Http404
    return redirect("explorer:question_set", slug=case.question_set.slug)


@require_POST
@admins_only
def remove_set(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Delete a set with its cases."""
    found = get_object_or_404(QuestionSet, slug=slug)
    delete_set(found, actor=viewer_of(request))
    messages.success(request, f"{found.name} deleted. The judgments of its questions remain.")
    return redirect("explorer:judgments")


@admin_page("GET")
def export(request: HtmxHttpRequest, slug: str, kind: str) -> HttpResponse:
    """Download the judgments of a set that the viewer may see, as CSV or TREC qrels."""
    found = get_object_or_404(QuestionSet, slug=slug)
    if kind not in _EXPORTS:
        raise Http404
    lines, content_type = _EXPORTS[kind]
    viewer = viewer_of(request)
    written = lines(found, viewer=viewer, scope=scope_for(Principal(viewer)))
    headers = {"Content-Disposition": f'attachment; filename="{slug}.{kind}"'}
    return HttpResponse("".join(written), content_type=f"{content_type}; charset=utf-8", headers=headers)


@require_POST
@admins_only
def import_judgments(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Import judgments from an uploaded file or pasted text, as the viewer's."""
    found, viewer = get_object_or_404(QuestionSet, slug=slug), viewer_of(request)
    try:
        lines = read_lines(_sent(request), found)
        done = import_lines(lines, found, actor=viewer, scope=scope_for(Principal(viewer)))
    except CoreCubeError as error:
        messages.error(request, str(error))
        return redirect("explorer:question_set", slug=slug)
    skipped = f" {done.skipped} passages were deleted or are outside your scope." if done.skipped else ""
    messages.success(request, f"Imported {done.cases} new cases and {done.judgments} judgments.{skipped}")
    return redirect("explorer:question_set", slug=slug)


def _sent(request: HtmxHttpRequest) -> str:
    """Return the uploaded or pasted text; raise InvalidRequestError."""
    file = request.FILES.get("file")
    if file is None:
        return request.POST.get("text", "")
    if (file.size or 0) > MAX_CHARACTERS:
        raise InvalidRequestError(f"The file exceeds {MAX_CHARACTERS:,} bytes.")
    try:
        return str(file.read(), "utf-8")
    except UnicodeDecodeError as error:
        raise InvalidRequestError("The file is not UTF-8 text.") from error
