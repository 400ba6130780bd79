"""POST /mcp: the MCP server's address. The API key or OAuth token is checked before the body is read."""

import json
from functools import partial
from typing import Final

from asgiref.sync import async_to_sync
from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from corecube.access import Principal
from corecube.api import error_response, failure_response, principal_of_key
from corecube.errors import CoreCubeError, NotAuthenticatedError, NotPermittedError
from corecube.keys import USER_HEADER, ForwardingNotAllowedError
from corecube.models import ApiKey, User
from corecube.models.access import KEY_PREFIX
from corecube.oauth.resource import challenge, principal_of_token
from retrieval.agents.tools import Caller

_EVENTS: Final = "text/event-stream"
_RESPONSE_HEADERS: Final = frozenset({"content-type", "mcp-protocol-version"})


class OriginError(NotPermittedError, code="origin_not_allowed"):
    """Pages of other sites may not call this server."""


@csrf_exempt
@require_POST
def mcp(request: HttpRequest) -> HttpResponseBase:
    """Answer a message of an agent. A browser session gives no access here."""
    try:
        _require_own_origin(request)
        principal = _principal(request)
        body = request.body
    except NotAuthenticatedError as error:
        response = failure_response(request, error)
        response.headers["WWW-Authenticate"] = challenge(request)
        return response
    except CoreCubeError as error:
        return failure_response(request, error)
    except RequestDataTooBig:
        return error_response("The request is too large.", status=413, code="request_too_large")
    from retrieval.agents.exchange import answered, streamed  # noqa: PLC0415 -- most installations have no agents

    headers = {name: value for name, value in request.headers.items() if name not in {"Authorization", "Cookie"}}
    caller = Caller(principal, request.build_absolute_uri, partial(_again, request, principal))
    if _wants_events(request, body):
        # Reverse proxies such as nginx would hold events back.
        unbuffered = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}
        return StreamingHttpResponse(streamed(body, headers, caller), content_type=_EVENTS, headers=unbuffered)
    reply = async_to_sync(answered)(body, headers, caller)
    headers = {name: value for name, value in reply.headers if name.lower() in _RESPONSE_HEADERS}
    return HttpResponse(bytes(reply.body), status=reply.status, headers=headers)


def _wants_events(request: HttpRequest, body: bytes) -> bool:
    """Return whether a response has more than its result: a call's progress, or changes of resources."""
    if _EVENTS not in request.headers.get("Accept", ""):
        return False
    try:
        message = json.loads(body)
        method, params = message.get("method"), message.get("params")
        is_followed = method == "tools/call" and "progressToken" in params["_meta"]
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return False
    return bool(is_followed or method == "subscriptions/listen")


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
