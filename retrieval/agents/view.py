"""POST /mcp: the MCP server's address. The bearer key is checked before the body is read."""

from typing import Final

from asgiref.sync import async_to_sync
from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from corecube.api import error_response, failure_response, principal_of_key
from corecube.errors import CoreCubeError, NotAuthenticatedError, NotPermittedError
from corecube.keys import USER_HEADER
from retrieval.agents.tools import Caller

_RESPONSE_HEADERS: Final = frozenset({"content-type", "mcp-protocol-version"})


class OriginError(NotPermittedError, code="origin_not_allowed"):
    """Pages of other sites may not call this server."""


@csrf_exempt
@require_POST
def mcp(request: HttpRequest) -> HttpResponse:
    """Answer a message of an agent. A browser session gives no access here."""
    try:
        _require_own_origin(request)
        given = request.headers.get("Authorization")
        if given is None:
            raise NotAuthenticatedError("An API key is required: send it as `Authorization: Bearer cc_...`.")
        principal = principal_of_key(given, request.headers.get(USER_HEADER))
        body = request.body
    except CoreCubeError as error:
        return failure_response(request, error)
    except RequestDataTooBig:
        return error_response("The request is too large.", status=413, code="request_too_large")
    from retrieval.agents.server import serve  # noqa: PLC0415 -- most installations have no agents

    headers = {name: value for name, value in request.headers.items() if name not in {"Authorization", "Cookie"}}
    reply = async_to_sync(serve)(body, headers, Caller(principal, request.build_absolute_uri))
    headers = {name: value for name, value in reply.headers if name.lower() in _RESPONSE_HEADERS}
    return HttpResponse(bytes(reply.body), status=reply.status, headers=headers)


def _require_own_origin(request: HttpRequest) -> None:
    """Raise OriginError for a page of another site (DNS rebinding)."""
    origin = request.headers.get("Origin")
    if origin is None or origin.lower() in {it.lower() for it in settings.CSRF_TRUSTED_ORIGINS}:
        return
    scheme, _, host = origin.partition("://")
    # A proxy may terminate TLS, so only the host is compared.
    if scheme.lower() not in {"http", "https"} or host.lower() != request.get_host().lower():
        raise OriginError
