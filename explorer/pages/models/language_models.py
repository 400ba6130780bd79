"""Language models and routing rules, for admins."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.text import slugify
from django.views.decorators.debug import sensitive_post_parameters

from corecube.errors import ConfigError, ConflictError, InvalidFieldsError
from corecube.http import HtmxHttpRequest
from explorer import wording
from explorer.pages.models.language_model_forms import LanguageModelForm, RuleForm
from explorer.viewer import admin_action, admin_page, errors_shown, render_page, viewer_of
from explorer.wording import WORDS
from retrieval.admin import language_models as services
from retrieval.admin.language_models import key_length
from retrieval.errors import AnswerError
from retrieval.llm.clients import default_of, is_configured, service_of, stored_models
from retrieval.llm.local_servers import LocalServer, local_servers
from retrieval.llm.reachability import ModelState, status_of, try_saved
from retrieval.llm.service_presets import PRESETS, ServicePreset
from retrieval.llm.trial import Trial, models_of, try_model
from retrieval.models import LanguageModel, RoutingRule


@dataclass(frozen=True, slots=True)
class _Listing:
    """The models of a service."""

    names: tuple[str, ...] = ()
    problem: str = ""


def _by_rank(models: Sequence[LanguageModel], default: LanguageModel | None) -> list[LanguageModel]:
    """Return the models, the default first and disabled ones last."""
    return sorted(models, key=lambda model: (default is None or model.pk != default.pk, not model.is_enabled))


def _trial_rows(trial: Trial) -> tuple[tuple[str, str], ...]:
    if not trial.ok:
        advice = WORDS["model_advice"].get(trial.error.code if trial.error else "", "")
        return (("Reason", trial.problem), *((("What to do", advice),) if advice else ()))
    usage = f"{trial.usage.prompt} input, {trial.usage.completion} output" if trial.usage else "not reported"
    return (
        ("Answer", trial.answer),
        ("Time to first token", _seconds(trial.first_token_seconds)),
        ("Total time", _seconds(trial.seconds)),
        ("Tokens", usage),
    )


def _row(model: LanguageModel, now: datetime, *, is_default: bool) -> dict[str, Any]:
    status = status_of(model)
    label, age = WORDS["model_states"][status.state], wording.ago(status.since or now, now)
    is_failing = status.state is ModelState.FAILING
    return {
        "model": model,
        "host": urlsplit(model.base_url).netloc,
        "state": status.state,
        "label": f"{label} for {age.removesuffix(' ago')}" if is_failing and "ago" in age else label,
        "tone": WORDS["model_tones"][status.state],
        "detail": status.problem,
        "answered": wording.ago(model.answered_at, now) if model.answered_at else "never",
        "failed": wording.ago(status.since, now) if is_failing and status.since else "",
        "checked": wording.ago(status.checked_at, now) if status.checked_at else "",
        "is_paused": status.is_paused,
        "price": f"{wording.money(model.prompt_price)} / {wording.money(model.completion_price)}"
        if model.prompt_price or model.completion_price
        else "\N{EN DASH}",
        "is_default": is_default,
        "has_key": bool(key_length(model)),
    }


def _described(rule: RoutingRule) -> tuple[int, str, str, str]:
    """Return id, kind, name and effect of a rule, whose user, compartment and model must be loaded."""
    model = rule.language_model.name if rule.language_model else ""
    if rule.compartment is not None:
        effect = f"passages go only to {model}" if model else "passages go to no language model"
        return rule.pk, "compartment", rule.compartment.name, effect
    name = rule.user.get_username() if rule.user else ""
    return rule.pk, "user", name, f"answered by {model}" if model else "answered with quotes only"


def _seconds(value: float | None) -> str:
    return "\N{EN DASH}" if value is None else f"{value * 1000:,.0f} ms" if value < 1 else f"{value:.1f} s"


@admin_page("GET")
def language_models(request: HtmxHttpRequest) -> HttpResponse:
    """List the language models and routing rules."""
    return _page(request, None, 200)


@sensitive_post_parameters()
@admin_page("GET", "POST", varies=True)
def new_language_model(request: HtmxHttpRequest) -> HttpResponse:
    """Test or add a language model; the first one becomes the default."""
    models = stored_models()
    preset = PRESETS.get(request.GET.get("preset", ""))
    model = LanguageModel(is_default=default_of(models) is None, **(preset.settings if preset else {}))
    return _edited(request, model, models, preset=preset)


@sensitive_post_parameters()
@admin_page("GET", "POST", varies=True)
def edit_language_model(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Test or change a language model."""
    models = stored_models()
    return _edited(request, get_object_or_404(LanguageModel, slug=slug), models)


@admin_action
def test_language_model(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Test a stored model, and show its tile with the result; without htmx, the list with a message."""
    model = get_object_or_404(LanguageModel.objects.select_related("fallback"), slug=slug)
    trial = try_saved(model, in_seconds=None)
    if not request.htmx:
        text = f"{model.name} answers." if trial.ok else f"{model.name} does not answer: {trial.problem}"
        messages.add_message(request, messages.SUCCESS if trial.ok else messages.WARNING, text)
        return redirect("explorer:language_models")
    model.refresh_from_db()
    default = default_of(stored_models())
    row = _row(model, timezone.now(), is_default=default is not None and model.pk == default.pk)
    context = {"row": row, "trial": trial, "trial_rows": _trial_rows(trial)}
    return render(request, "explorer/models/_model_tile.html", context)


@admin_page("GET", "POST")
def delete_language_model(request: HtmxHttpRequest, slug: str) -> HttpResponse:
    """Confirm and, by a POST, delete a language model that no rule uses."""
    model = get_object_or_404(LanguageModel, slug=slug)
    if request.method == "POST":
        with errors_shown(request):
            services.delete_model(model, actor=viewer_of(request))
            messages.success(request, f"{model.name} was deleted. Its recorded usage remains.")
        return redirect("explorer:language_models")
    context = {
        "model": model,
        "rules": [_described(it) for it in _rules().filter(language_model=model)],
        "followed": LanguageModel.objects.filter(fallback=model).order_by("name"),
        "is_locked": model.is_locked and is_configured(),
    }
    return render(request, "explorer/models/language_model_delete.html", context)


@admin_action
def set_rule(request: HtmxHttpRequest) -> HttpResponse:
    """Set or replace the rule of a user or compartment."""
    form = RuleForm(request.POST, models=stored_models())
    if not form.is_valid():
        return _page(request, form, 422)
    services.set_rule(form.owner, form.model, actor=viewer_of(request))
    messages.success(request, f"The rule for {form.owner} was saved. It applies from the next answer.")
    return redirect(f"{reverse('explorer:language_models')}#rules")


@admin_action
def remove_rule(request: HtmxHttpRequest, number: int) -> HttpResponse:
    """Remove a rule."""
    rule = get_object_or_404(RoutingRule.objects.select_related("user", "compartment"), pk=number)
    owner = rule.user or rule.compartment
    if owner is not None:
        services.remove_rule(owner, actor=viewer_of(request))
        messages.success(request, f"The rule for {owner} was removed.")
    return redirect(f"{reverse('explorer:language_models')}#rules")


def _page(request: HtmxHttpRequest, form: RuleForm | None, status: int) -> HttpResponse:
    models = stored_models()
    default = default_of(models)
    now = timezone.now()
    ordered = _by_rank(models, default)
    context = {
        "rows": [_row(model, now, is_default=default is not None and model.pk == default.pk) for model in ordered],
        "rules": [_described(it) for it in _rules()],
        "form": form or RuleForm(models=_by_rank(models, default)),
    }
    return render(request, "explorer/models/language_models.html", context, status=status)


def _rules() -> QuerySet[RoutingRule]:
    found = RoutingRule.objects.select_related("user", "compartment", "language_model")
    return found.order_by("compartment__name", "user__username")


def _edited(
    request: HtmxHttpRequest,
    model: LanguageModel,
    models: Sequence[LanguageModel],
    *,
    preset: ServicePreset | None = None,
) -> HttpResponse:
    """Return the form, with the result of a test or a list of models if any, or redirect to the list after saving."""
    form = LanguageModelForm(request.POST or None, instance=model, others=models)
    is_new = model.pk is None
    is_test = request.POST.get("do") == "test"
    trial: Trial | None = None
    listing = _listing(form) if request.POST.get("do") == "models" else None
    if listing is None and request.method == "POST" and form.is_valid():
        if is_test:
            trial = _tested(form)
            form.offer(trial.models)
        elif _is_saved(request, form, is_new=is_new):
            return redirect("explorer:language_models")
    stored = None if is_new else LanguageModel.objects.get(pk=model.pk)
    url_name = "explorer:new_language_model" if stored is None else "explorer:edit_language_model"
    context = {
        "form": form,
        "is_new": is_new,
        "model": stored,
        "is_locked": model.is_locked,
        "action": reverse(url_name, args=[stored.slug] if stored else [])
        + (f"?preset={preset.slug}" if preset else ""),
        "presets": PRESETS.values() if is_new else (),
        "preset": preset,
        "listing": listing,
        "trial": trial,
        "trial_rows": _trial_rows(trial) if trial else (),
        "is_test": is_test,
        "is_refused": bool(form.errors),
    }
    page, fragment = "explorer/models/language_model_edit.html", "explorer/models/_language_model_form.html"
    return render_page(request, page, fragment, context, status=form.status)


def _listing(form: LanguageModelForm) -> _Listing | None:
    """Return the models of the service as entered, which needs no name and no model; None if the form is refused."""
    if not form.is_ready_for_list():
        return None
    try:
        names = models_of(service_of(form.instance, form.key))
    except (AnswerError, ConfigError) as error:
        return _Listing(problem=str(error))
    form.offer(names)
    return _Listing(names)


def _tested(form: LanguageModelForm) -> Trial:
    """Test the model as entered, with the stored key if none is entered."""
    if form.instance.pk and not form.has_changed():
        return try_saved(form.instance, in_seconds=None)
    try:
        return try_model(service_of(form.instance, form.key))
    except ConfigError as error:
        return Trial(problem=str(error))


def _is_saved(request: HtmxHttpRequest, form: LanguageModelForm, *, is_new: bool) -> bool:
    viewer, model = viewer_of(request), form.instance
    try:
        if is_new:
            services.create_model(model, form.key or "", actor=viewer)
            report_saved(request, model, f"{model.name} was added")
        else:
            changed = services.change_model(model, form.key, actor=viewer)
            report_saved(request, model, f"{model.name} was saved" if changed else "Nothing was changed")
    except ConflictError as error:
        form.add_error(None, str(error))
    return not form.errors


def report_saved(request: HtmxHttpRequest, model: LanguageModel, done: str) -> None:
    """Show that the model was saved, and whether it answers now."""
    if not model.is_enabled:
        messages.success(request, f"{done}.")
        return
    trial = try_saved(model)
    if trial.ok:
        messages.success(request, f"{done}. The model answers.")
    else:
        messages.warning(request, f"{done}, but the model does not answer: {trial.problem}")


@admin_page("GET", "POST", varies=True)
def local_models(request: HtmxHttpRequest) -> HttpResponse:
    """List the servers of language models on this machine; a POST adds one of their models."""
    # The addresses are fixed: nothing of the request decides where is looked.
    servers = local_servers(own_ports={int(request.get_port()), settings.CORECUBE_PORT})
    if request.method == "POST":
        return _added(request, servers)
    context = {"servers": servers}
    page, fragment = "explorer/models/local_models.html", "explorer/models/_local_models.html"
    return render_page(request, page, fragment, context)


def _added(request: HtmxHttpRequest, servers: tuple[LocalServer, ...]) -> HttpResponse:
    wanted = request.POST.get("port", ""), request.POST.get("model", "")
    server = next((it for it in servers for name in it.models if (str(it.port), name) == wanted), None)
    if server is None:
        messages.error(request, "This model is no longer offered on this machine.")
        return redirect("explorer:language_models")
    values = server.preset.settings | {"base_url": server.base_url, "model": wanted[1]}
    # llama.cpp names a model by the path of its file.
    short = wanted[1].rpartition("/")[2] or wanted[1]
    name = f"{short} ({server.preset.name})"[:120]
    slug = slugify(f"{server.preset.slug}-{short.replace('.', '-').replace(':', '-')}")[:50].strip("-_")
    model = LanguageModel(name=name, slug=slug, is_default=default_of(stored_models()) is None, **values)
    try:
        services.create_model(model, "", actor=viewer_of(request))
    except (ConflictError, InvalidFieldsError) as error:
        messages.error(request, f"{name} was not added: {error}")
    else:
        report_saved(request, model, f"{name} was added")
    return redirect("explorer:language_models")
