"""Who looks at a page, and as whom: what every view begins with."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec
from urllib.parse import urlsplit

from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import render, resolve_url
from django_htmx.http import HttpResponseClientRedirect

from corecube import audit
from corecube.access import Principal, user_named
from corecube.errors import ConflictError, NotFoundError, NotPermittedError
from corecube.http import HtmxHttpRequest
from corecube.models import User
from retrieval.models import SearchRecord

_P = ParamSpec("_P")
_View = Callable[Concatenate[HtmxHttpRequest, _P], HttpResponseBase]


def signed_in(view: _View[_P]) -> _View[_P]:
    """Let only a signed-in user into a view; anyone else goes to the sign-in page, with the whole browser window.

    What is gone by the time that the view changes it is a 404, and other changes that came in between are a 409. Any
    other error of the request is answered by `corecube.refusals`.
    """

    @wraps(view)
    def guarded(request: HtmxHttpRequest, /, *args: _P.args, **kwargs: _P.kwargs) -> HttpResponseBase:
        if request.user.is_authenticated:
            return _answered(view, request, *args, **kwargs)
        if wants_fragment(request):
            return HttpResponseClientRedirect(redirect_to_login(_page_around(request)).url)
        return redirect_to_login(request.get_full_path(), resolve_url("login"))

    return guarded


def _page_around(request: HtmxHttpRequest) -> str:
    """Return the path and query of the page that a fragment is asked for from; "/" where the browser does not say."""
    try:
        page = urlsplit(request.htmx.current_url or "")
    except ValueError:
        return "/"
    return f"{page.path}?{page.query}" if page.query else page.path or "/"


def _answered(view: _View[_P], request: HtmxHttpRequest, *args: _P.args, **kwargs: _P.kwargs) -> HttpResponseBase:
    """Return a view's answer; where somebody else was faster and the view has no place for it, a page that says so."""
    try:
        return view(request, *args, **kwargs)
    except NotFoundError as error:
        raise Http404 from error
    except ConflictError as error:
        context = {"title": "Changed meanwhile", "message": f"{error} Nothing was saved; go back and look again."}
        return render(request, "error.html", context, status=error.status)


def admins_only(view: _View[_P]) -> _View[_P]:
    """Let only an admin into a view; for other users it does not exist."""

    @signed_in
    @wraps(view)
    def guarded(request: HtmxHttpRequest, /, *args: _P.args, **kwargs: _P.kwargs) -> HttpResponseBase:
        if not viewer_of(request).is_admin:
            raise Http404
        return view(request, *args, **kwargs)

    return guarded


def wants_fragment(request: HtmxHttpRequest) -> bool:
    """Return whether only a fragment, not the page around it, will be swapped in."""
    htmx = request.htmx
    return bool(htmx) and not htmx.boosted and not htmx.history_restore_request


def comes_whole(request: HtmxHttpRequest, *, whole: bool, run_as: str) -> bool:
    """Return whether a page that runs several searches comes with what they find, which otherwise follows it.

    A fragment does, a page that is asked for `whole`, and one that is read as somebody else, so that it is noted once.
    """
    return wants_fragment(request) or whole or run_as not in {"", viewer_of(request).username}


def viewer_of(request: HttpRequest) -> User:
    """Return the signed-in user; raise NotPermittedError for nobody."""
    if not isinstance(request.user, User):
        raise NotPermittedError
    return request.user


def principal_for(viewer: User, run_as: str) -> Principal:
    """Return the principal that a page reads as: the viewer, or for an admin any active user, which is audited.

    Raises NotPermittedError for anyone else who names another user, whether or not that user exists.
    """
    if run_as in {"", viewer.username}:
        return Principal(viewer)
    if not viewer.is_admin:
        raise NotPermittedError("Only an admin may run a search as someone else.")
    # PostgreSQL takes no NUL, and no name has one.
    user = user_named(run_as.replace("\0", ""))
    audit.record("search.run_as", actor=viewer, subject=user.username)
    return Principal(user, actor=viewer)


def principal_of(record: SearchRecord, viewer: User) -> Principal:
    """Return the principal that a search of the viewer's was made as; raise Http404 where they may not be it now."""
    try:
        return principal_for(viewer, record.user.username if record.user else "")
    except (NotFoundError, NotPermittedError) as error:
        raise Http404 from error
