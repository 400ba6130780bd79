"""Question sets, for admins: cases, runs, import and export of judgments."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count, Q, QuerySet
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.utils.timezone import is_aware

from corecube.access import Principal, scope_for, user_named
from corecube.errors import CoreCubeError, InvalidRequestError
from corecube.http import CSV_ENCODING, HtmxHttpRequest
from corecube.sanitise import storable
from corecube.scope import AccessScope
from explorer import wording
from explorer.pages.evaluation.gates import set_gates_context
from explorer.pages.evaluation.judge import next_page
from explorer.pages.evaluation.runs import choices, configurations, run_rows
from explorer.pages.evaluation.schedules import schedules_context
from explorer.viewer import admin_action, admin_page, errors_shown, viewer_of, whole_number
from retrieval.evaluation import question_sets as services
from retrieval.evaluation.case_answers import expected_in
from retrieval.evaluation.drawing import MAX_DRAWN, SAMPLES, draw
from retrieval.evaluation.imports import (
    MAX_CHARACTERS,
    Imported,
    as_csv,
    batches,
    import_lines,
    preview_lines,
    read_lines,
    undo,
)
from retrieval.evaluation.judging import agreement, rated_passages
from retrieval.evaluation.qrels import csv_of, qrels_of
from retrieval.models import Case, EvaluationRun, Judgment, LanguageModel, QuestionSet
from retrieval.records.judgments import normalised_query, outdated, standing

_CASES_PER_PAGE: Final = 20
_MAX_NAMED: Final = 5  #: Documents that an import did not find and names.
_MAX_PREVIEWED: Final = 10  #: Lines of an import.
_EXPORTS: Final = {"csv": (csv_of, "text/csv"), "qrels": (qrels_of, "text/plain")}


def _by_query(queries: Iterable[str], judgments: QuerySet[Judgment]) -> Mapping[str, int]:
    wanted = {normalised_query(query) for query in queries}
    counted = judgments.filter(query__in=wanted).values("query").annotate(number=Count("pk"))
    return {row["query"]: row["number"] for row in counted}


@admin_page("GET", "POST")
def question_sets(request: HtmxHttpRequest) -> HttpResponse:
    """List the question sets; a POST creates one."""
    viewer = viewer_of(request)
    if request.method == "POST":
        try:
            made = services.set_named(request.POST.get("name", ""), actor=viewer)
        except CoreCubeError as error:
            messages.error(request, str(error))
            return redirect("explorer:judgments")
        return redirect("explorer:question_set", slug=made.slug)
    sets = QuestionSet.objects.annotate(size=Count("cases"), open=Count("cases", filter=Q(cases__is_answerable=False)))
    cases = list(Case.objects.filter(is_answerable=True).values_list("question_set_id", "query"))
    counts = _by_query([query for _, query in cases], standing(scope_for(Principal(viewer))))
    judged = Counter(set_id for set_id, query in cases if counts.get(normalised_query(query)))
    context = {
        # With the number of answerable cases that have a judgment which the reader may see.
        "rows": [(it, judged[it.pk]) for it in sets]
    }
    return render(request, "explorer/evaluation/judgments.html", context)


@admin_page("GET", "POST")
def question_set(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Show a set's cases; a POST adds one."""
    found = get_object_or_404(QuestionSet, slug=slug)
    if request.method == "POST":
        with errors_shown(request):
            query = request.POST.get("query", "")
            services.save_case(found, query, actor=viewer_of(request), facts=_facts(request.POST))
        return redirect("explorer:question_set", slug=slug)
    return render(request, "explorer/evaluation/question_set.html", _page(request, found))


def _facts(sent: QueryDict) -> services.CaseFacts:
    user = sent.get("user", "").strip()
    return services.CaseFacts(
        is_answerable=sent.get("answerable", "yes") == "yes",
        user=user_named(user.replace("\0", "")) if user else None,
        tags=services.tags_in(sent.get("tags", "")),
        answers=expected_in(sent.get("expected", "")),
    )


def _page(request: HtmxHttpRequest, found: QuestionSet) -> dict[str, Any]:
    scope = scope_for(Principal(viewer_of(request)))
    return {
        "question_set": found,
        "size": found.cases.count(),
        **_cases(request.GET, found, scope),
        "counts": [it for it in EvaluationRun.Counts if it != EvaluationRun.Counts.MODEL or _has_model()],
        "imports": batches(found),
        "samples": SAMPLES.items(),
        "max_drawn": MAX_DRAWN,
        "configurations": configurations(),
        **choices(),
        "runs": (rows := run_rows(found, Principal(viewer_of(request)))),
        "has_answers": any(row["right"] for row in rows),
        "right_help": wording.WORDS["answer_formulas"]["right"],
        "agreement": agreement(rated_passages(found, scope)),
        **set_gates_context(found),
        **schedules_context(found, Principal(viewer_of(request))),
    }


def _cases(query: QueryDict, found: QuestionSet, scope: AccessScope) -> dict[str, Any]:
    """Return a page of the cases whose questions contain a text.

    Each has the numbers of its judgments: of those that count, of the outdated ones, and of those that count and are
    above 0.
    """
    find = storable(query.get("find", "")).strip()
    shown = found.cases.filter(query__icontains=find).select_related("created_by", "user")
    page = Paginator(shown, _CASES_PER_PAGE).get_page(query.get("page"))
    queries = [case.query for case in page]
    judgments = standing(scope)
    counts = [_by_query(queries, it) for it in (judgments, outdated(scope), judgments.filter(grade__gt=0))]
    return {
        "find": find,
        "find_query": urlencode({"find": find}) if find else "",
        "page": page,
        "cases": [(case, *(it.get(normalised_query(case.query), 0) for it in counts)) for case in page],
    }


def _has_model() -> bool:
    return LanguageModel.objects.filter(is_enabled=True).exists()


@admin_action
def change_case(request: HtmxHttpRequest, case_id: UUID) -> HttpResponse:
    """Mark a case as answerable or not, set its expected answer, or delete it."""
    case = get_object_or_404(Case.objects.select_related("question_set"), pk=case_id)
    action = request.POST.get("action", "")
    if action == "delete":
        services.delete_case(case, actor=viewer_of(request))
    elif action in {"answerable", "unanswerable"}:
        services.mark_case(case, is_answerable=action == "answerable", actor=viewer_of(request))
    elif action == "expect":
        with errors_shown(request):
            services.expect(case, expected_in(request.POST.get("expected", "")), actor=viewer_of(request))
    else:
        raise Http404
    return redirect(next_page(request, reverse("explorer:question_set", args=[case.question_set.slug])))


@admin_action
def remove_set(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Delete a set with its cases."""
    found = get_object_or_404(QuestionSet, slug=slug)
    if request.POST.get("sure") != "yes":
        messages.error(request, "Nothing was deleted. Confirm that the cases may go.")
        return redirect("explorer:question_set", slug=slug)
    services.delete_set(found, actor=viewer_of(request))
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
    content = "".join(written).encode(CSV_ENCODING if kind == "csv" else "utf-8")
    return HttpResponse(content, content_type=f"{content_type}; charset=utf-8", headers=headers)


@admin_action
def import_judgments(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Import judgments from an uploaded file or pasted text, as the viewer's, or show what would be imported.

    It also deletes the cases of an earlier import.
    """
    found, viewer = get_object_or_404(QuestionSet, slug=slug), viewer_of(request)
    if request.POST.get("action") == "undo":
        _undo(request, found)
        return redirect("explorer:question_set", slug=slug)
    scope = scope_for(Principal(viewer))
    with errors_shown(request):
        lines = read_lines(_sent(request), found)
        if request.POST.get("action") == "preview":
            done = preview_lines(lines, found, actor=viewer, scope=scope)
            preview = {"counts": _counts(done), "missing": _missing(done), "rows": lines[:_MAX_PREVIEWED]}
            context = {**_page(request, found), "preview": preview, "lines": len(lines), "text": as_csv(lines)}
            return render(request, "explorer/evaluation/question_set.html", context)
        done = import_lines(lines, found, actor=viewer, scope=scope)
        messages.success(request, f"Imported {_counts(done)}.")
        if missing := _missing(done):
            messages.warning(request, missing)
    return redirect("explorer:question_set", slug=slug)


def _undo(request: HtmxHttpRequest, question_set: QuestionSet) -> None:
    try:
        at = parse_datetime(request.POST.get("at", ""))
    except ValueError:
        at = None
    number = undo(question_set, at, actor=viewer_of(request)) if at and is_aware(at) else 0
    if number:
        said = f"Deleted {wording.counted(number, 'case')} of the import. The judgments of their questions remain."
        messages.success(request, said)
    else:
        messages.info(request, "The cases of this import were deleted before.")


def _counts(done: Imported) -> str:
    return f"{wording.counted(done.cases, 'new case')} and {wording.counted(done.judgments, 'judgment')}"


def _missing(done: Imported) -> str:
    """Return which documents were not found; empty for none."""
    if not done.missing:
        return ""
    names = ", ".join(done.missing[:_MAX_NAMED])
    more = f" and {len(done.missing) - _MAX_NAMED} more" if len(done.missing) > _MAX_NAMED else ""
    return f"Not found among the documents that you can see: {names}{more}."


@admin_action
def draw_questions(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Add questions of the log to a set."""
    found, viewer = get_object_or_404(QuestionSet, slug=slug), viewer_of(request)
    number = whole_number(request.POST.get("number", ""), 0, digits=6)
    with errors_shown(request):
        drawn = draw(found, request.POST.get("sample", ""), number, actor=viewer)
        if drawn:
            messages.success(request, f"Added {drawn} question{'s' if drawn > 1 else ''} of the log.")
        else:
            messages.info(request, "The log of the last 90 days has no other such question.")
    return redirect("explorer:question_set", slug=slug)


def _sent(request: HtmxHttpRequest) -> list[str]:
    files = request.FILES.getlist("file")
    if sum(it.size or 0 for it in files) > MAX_CHARACTERS:
        raise InvalidRequestError(f"The files exceed {MAX_CHARACTERS:,} bytes.")
    try:
        return [str(it.read(), "utf-8") for it in files] or [request.POST.get("text", "")]
    except UnicodeDecodeError as error:
        raise InvalidRequestError("A file is not UTF-8 text.") from error
