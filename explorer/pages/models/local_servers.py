"""Servers of language models on this machine, for admins: found, and added with one click."""

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.text import slugify

from corecube.errors import ConflictError, InvalidFieldsError
from corecube.http import HtmxHttpRequest
from explorer.pages.models.language_models import report_saved
from explorer.viewer import admin_page, render_page, viewer_of
from retrieval.admin import language_models as services
from retrieval.llm.environment import default_of, stored_models
from retrieval.llm.local_servers import LocalServer, local_servers
from retrieval.models import LanguageModel


@admin_page("GET", "POST", varies=True)
def local_models(request: HtmxHttpRequest) -> HttpResponse:
    """List the servers of language models on this machine; a POST adds one of their models."""
    # The addresses are fixed: nothing of the request decides where is looked.
    servers = local_servers(own_ports={int(request.get_port()), settings.CORECUBE_PORT})
    if request.method == "POST":
        return _added(request, servers)
    context = {"section": "language_models", "servers": servers, "is_page": not request.htmx}
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
