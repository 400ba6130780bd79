"""Starting prompts of the chat page, for admins."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from corecube.http import HtmxHttpRequest
from corecube.models import Connection
from explorer.pages.prompts.forms import PromptForm
from explorer.viewer import admin_action, admin_page, viewer_of
from retrieval.answers.conversations.prompts import delete_prompt, save_prompt
from retrieval.models import StartingPrompt


@admin_page("GET", "POST")
def prompts(request: HtmxHttpRequest) -> HttpResponse:
    """List the starting prompts; a POST adds one."""
    form = PromptForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        save_prompt(StartingPrompt(**form.cleaned_data), actor=viewer_of(request))
        messages.success(request, "The prompt was added.")
        return redirect("explorer:prompts")
    names = dict(Connection.objects.values_list("slug", "name"))
    rows = [(it, [names.get(slug, f"{slug} (deleted)") for slug in it.sources]) for it in StartingPrompt.objects.all()]
    return render(request, "explorer/prompts/prompts.html", {"rows": rows, "form": form}, status=form.status)


@admin_page("GET", "POST")
def prompt(request: HtmxHttpRequest, prompt_id: int) -> HttpResponse:
    """Show a starting prompt; a POST changes it."""
    found = get_object_or_404(StartingPrompt, pk=prompt_id)
    stored = {"title": found.title, "text": found.text, "sources": found.sources}
    form = PromptForm(request.POST or None, initial=stored)
    if request.method == "POST" and form.is_valid():
        for name, value in form.cleaned_data.items():
            setattr(found, name, value)
        save_prompt(found, actor=viewer_of(request))
        messages.success(request, "The prompt was saved.")
        return redirect("explorer:prompts")
    return render(request, "explorer/prompts/prompt.html", {"prompt": found, "form": form}, status=form.status)


@admin_action
def remove_prompt(request: HtmxHttpRequest, prompt_id: int) -> HttpResponse:
    """Delete a starting prompt."""
    delete_prompt(get_object_or_404(StartingPrompt, pk=prompt_id), actor=viewer_of(request))
    messages.success(request, "The prompt was deleted.")
    return redirect("explorer:prompts")
