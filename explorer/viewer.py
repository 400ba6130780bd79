"""The viewer of a page and its principal, for all views."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import urlsplit

from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render, resolve_url
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST
from django.views.decorators.vary import vary_on_headers
from django_htmx.http import HttpResponseClientRedirect

from corecube import audit
from corecube.access import Principal, user_named
from corecube.errors import ConflictError, CoreCubeError, NotFoundError, NotPermittedError
from corecube.http import HtmxHttpRequest
from corecube.models import User
from retrieval.models import SearchRecord

_P = ParamSpec("_P")
_Default = TypeVar("_Default")
_View = Callable[Concatenate[HtmxHttpRequest, _P], HttpResponseBase]


def signed_in(view: _View[_P]) -> _View[_P]:
    """Restrict a view to signed-in users; anyone else is redirected to the sign-in page, also from a fragment.

    A NotFoundError becomes a 404, a ConflictError a 409 page. Others go to `corecube.refusals`.
    """

    @wraps(view)
    def guarded(request: HtmxHttpRequest, /, *args: _P.args, **kwargs: _P.kwargs) -> HttpResponseBase:
        if not request.user.is_authenticated:
            if wants_fragment(request):
                return HttpResponseClientRedirect(redirect_to_login(_current_page(request)).url)
            return redirect_to_login(request.get_full_path(), resolve_url("login"))
        try:
            return view(request, *args, **kwargs)
        except NotFoundError as error:
            raise Http404 from error
        except ConflictError as error:
            context = {"title": "Conflict", "message": f"{error} Nothing was saved. Go back and reload the page."}
            return render(request, "error.html", context, status=error.status)

    return guarded


def _current_page(request: HtmxHttpRequest) -> str:
    """Return the path and query of the page that requests a fragment; "/" if the browser does not send it."""
    try:
        page = urlsplit(request.htmx.current_url or "")
    except ValueError:
        return "/"
    return f"{page.path}?{page.query}" if page.query else page.path or "/"


def admins_only(view: _View[_P]) -> _View[_P]:
    """Restrict a view to admins; other users get a 404."""

    @signed_in
    @wraps(view)
    def guarded(request: HtmxHttpRequest, /, *args: _P.args, **kwargs: _P.kwargs) -> HttpResponseBase:
        if not viewer_of(request).is_admin:
            raise Http404
        return view(request, *args, **kwargs)

    return guarded


def user_page(*methods: str, varies: bool = False, may_cache: bool = False) -> Callable[[_View[_P]], _View[_P]]:
    """Restrict a view to signed-in users and these methods; without `may_cache`, its response is never cached.

    `varies` is for a view that answers htmx with a fragment at the same address.
    """
    return partial(_guarded, methods, signed_in, varies=varies, may_cache=may_cache)


def admin_page(*methods: str, varies: bool = False, may_cache: bool = False) -> Callable[[_View[_P]], _View[_P]]:
    """Restrict a view as `user_page` does, but to admins."""
    return partial(_guarded, methods, admins_only, varies=varies, may_cache=may_cache)


def admin_action(view: _View[_P]) -> _View[_P]:
    """Restrict a view to admins and POST."""
    return require_POST(admins_only(view))


def _guarded(
    methods: Sequence[str], guard: Callable[[_View[_P]], _View[_P]], view: _View[_P], *, varies: bool, may_cache: bool
) -> _View[_P]:
    shown = vary_on_headers("HX-Request")(view) if varies else view
    return require_http_methods(list(methods))(guard(shown if may_cache else never_cache(shown)))


def whole_number(text: str, default: _Default, *, digits: int = 18) -> int | _Default:
    """Return a number of an address or a form; the default for anything else, and for more digits."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= digits else default


def wants_fragment(request: HtmxHttpRequest) -> bool:
    """Return whether htmx requests only a fragment, not the complete page."""
    htmx = request.htmx
    return bool(htmx) and not htmx.boosted and not htmx.history_restore_request


def render_page(
    request: HtmxHttpRequest, page: str, fragment: str, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    """Render the fragment for a request that htmx swaps in, else the complete page."""
    return render(request, fragment if wants_fragment(request) else page, context, status=status)


def includes_results(request: HtmxHttpRequest, *, whole: bool, run_as: str) -> bool:
    """Return whether a page that runs several searches includes their results instead of loading them later.

    A fragment does, a page requested as `whole`, and one viewed as another user, so that it is audited once.
    """
    return wants_fragment(request) or whole or run_as not in {"", viewer_of(request).username}


@contextmanager
def errors_shown(request: HttpRequest) -> Iterator[None]:
    """End the block at a CoreCubeError, and show it as a message on the next page."""
    try:
        yield
    except CoreCubeError as error:
        messages.error(request, str(error))


def viewer_of(request: HttpRequest) -> User:
    """Return the signed-in user; raise NotPermittedError for nobody."""
    if not isinstance(request.user, User):
        raise NotPermittedError
    return request.user


def principal_for(viewer: User, run_as: str) -> Principal:
    """Return the principal of a page: the viewer, or for an admin any active user, which is audited.

    Raises NotPermittedError for anyone else who names another user, whether or not that user exists.
    """
    if run_as in {"", viewer.username}:
        return Principal(viewer)
    if not viewer.is_admin:
        raise NotPermittedError("Only an admin may run a search as someone else.")
    # PostgreSQL does not accept NUL, and no name contains it.
    user = user_named(run_as.replace("\0", ""))
    audit.record("search.run_as", actor=viewer, subject=user.username)
    return Principal(user, actor=viewer)


def principal_of(record: SearchRecord, viewer: User) -> Principal:
    """Return the principal of a recorded search; raise Http404 if the viewer may not act as it now."""
    try:
        return principal_for(viewer, record.user.username if record.user else "")
    except (NotFoundError, NotPermittedError) as error:
        raise Http404 from error
