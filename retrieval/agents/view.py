"""The MCP server's address: POST for messages; GET and DELETE for the events and the end of a session.

The API key or OAuth token is checked before the body is read.
"""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from asgiref.sync import async_to_sync
from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotAllowed, StreamingHttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from corecube.access import Principal
from corecube.api import error_response, failure_response, principal_of_key
from corecube.database import release_connection
from corecube.errors import CoreCubeError, NotAuthenticatedError, NotPermittedError
from corecube.keys import USER_HEADER, ForwardingNotAllowedError
from corecube.models import ApiKey, User
from corecube.models.access import KEY_PREFIX
from corecube.oauth.resource import challenge, principal_of_token
from retrieval.agents import sessions
from retrieval.agents.tools import Caller

_EVENTS: Final = "text/event-stream"
_SESSION_HEADER: Final = "Mcp-Session-Id"
#: Reverse proxies such as nginx would hold events back.
_UNBUFFERED: Final = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}
_RESPONSE_HEADERS: Final = frozenset({"content-type", "mcp-protocol-version"})


class OriginError(NotPermittedError, code="origin_not_allowed"):
    """Pages of other sites may not call this server."""


@csrf_exempt
@require_http_methods(["POST", "GET", "DELETE"])
def mcp(request: HttpRequest) -> HttpResponseBase:
    """Answer a message of an agent, or send or end its session. A browser session gives no access here."""
    try:
        _require_own_origin(request)
        caller = _caller(request)
        if request.method == "POST":
            return _answer(request, request.body, caller)
        return _session_response(request, caller)
    except NotAuthenticatedError as error:
        response = failure_response(request, error)
        response.headers["WWW-Authenticate"] = challenge(request)
        return response
    except CoreCubeError as error:
        return failure_response(request, error)
    except RequestDataTooBig:
        return error_response("The request is too large.", status=413, code="request_too_large")


def _caller(request: HttpRequest) -> Caller:
    """Return who calls, and in which session; raise as `_principal` and `sessions.opened` do."""
    principal, given = _principal(request), request.headers.get(_SESSION_HEADER)
    session = None if given is None else sessions.opened(principal, given)
    return Caller(principal, request.build_absolute_uri, partial(_again, request, principal), session=session)


def _answer(request: HttpRequest, body: bytes, caller: Caller) -> HttpResponseBase:
    from retrieval.agents.exchange import answered, streamed  # noqa: PLC0415 -- most installations have no agents

    headers = {name: value for name, value in request.headers.items() if name not in {"Authorization", "Cookie"}}
    message = _message(body)
    if _EVENTS in request.headers.get("Accept", "") and _has_events(message):
        return StreamingHttpResponse(streamed(body, headers, caller), content_type=_EVENTS, headers=_UNBUFFERED)
    reply = async_to_sync(answered)(body, headers, caller)
    headers = {name: value for name, value in reply.headers if name.lower() in _RESPONSE_HEADERS}
    if message.get("method") == "initialize" and "result" in _message(bytes(reply.body)):
        headers[_SESSION_HEADER] = sessions.begin(caller.principal)
    return HttpResponse(bytes(reply.body), status=reply.status, headers=headers)


def _session_response(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """Send the events of a session, or end it; without a session there are none."""
    if caller.session is None:
        return HttpResponseNotAllowed(["POST"])
    if request.method == "DELETE":
        caller.session.end()
        return HttpResponse(status=204)
    if _EVENTS not in request.headers.get("Accept", ""):
        return error_response("Accept text/event-stream.", status=406, code="not_acceptable")
    from retrieval.agents.following import require_stream, updates  # noqa: PLC0415 -- most installations have no agents

    caller.session.followed()  # If its state is lost, the client learns it by 404 and begins another one.
    require_stream(caller.principal)
    release_connection()
    return StreamingHttpResponse(updates(caller, caller.session), content_type=_EVENTS, headers=_UNBUFFERED)


def _message(body: bytes) -> dict[str, Any]:
    """Return a message; empty for anything but a JSON object."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _has_events(message: Mapping[str, Any]) -> bool:
    """Return whether a response has more than its result: a call's progress, or changes of resources."""
    if message.get("method") == "subscriptions/listen":
        return True
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return message.get("method") == "tools/call" and isinstance(meta, dict) and "progressToken" in meta


def _principal(request: HttpRequest) -> Principal:
    """Return the principal of a key or a token; raise NotAuthenticatedError, or as `principal_of_key` does."""
    given = request.headers.get("Authorization")
    if given is None:
        raise NotAuthenticatedError("Sign in by OAuth, or send an API key as `Authorization: Bearer cc_...`.")
    scheme, _, secret = given.partition(" ")
    if scheme.lower() != "bearer" or secret.strip().startswith(KEY_PREFIX):
        return principal_of_key(given, request.headers.get(USER_HEADER))
    if USER_HEADER in request.headers:
        raise ForwardingNotAllowedError
    return principal_of_token(request, secret.strip())


def _again(request: HttpRequest, principal: Principal) -> Principal:
    """Return the principal as it is now; raise NotAuthenticatedError once its key, token or user is of no use."""
    if principal.key is None:
        return principal_of_token(request, request.headers["Authorization"].partition(" ")[2].strip())
    key = ApiKey.objects.usable().select_related("user").filter(pk=principal.key.pk).first()
    user = User.objects.filter(pk=principal.user.pk, is_active=True).first()
    if key is None or user is None or (principal.is_forwarded and not key.may_forward_users):
        raise NotAuthenticatedError
    return Principal(user, key)


def _require_own_origin(request: HttpRequest) -> None:
    """Raise OriginError for a page of another site (DNS rebinding)."""
    origin = request.headers.get("Origin")
    if origin is None or origin.lower() in {it.lower() for it in settings.CSRF_TRUSTED_ORIGINS}:
        return
    scheme, _, host = origin.partition("://")
    # A proxy may terminate TLS, so only the host is compared.
    if scheme.lower() not in {"http", "https"} or host.lower() != request.get_host().lower():
        raise OriginError
