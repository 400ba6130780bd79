"""Dynamic client registration (RFC 7591): public clients with redirects to the user's computer or permitted hosts."""

from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError as DjangoValidationError
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST
from oauth2_provider.models import Application
from pydantic import BaseModel, Field, ValidationError

from corecube.errors import RefusedForNowError
from corecube.oauth.resource import SCOPE
from corecube.sanitise import storable
from corecube.sign_in_limits import count_registration
from corecube.sign_ins import address_of

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_GRANTS: Final = ("authorization_code", "refresh_token")


class _Metadata(BaseModel):
    """What is read of a client's metadata; everything else is ignored, as RFC 7591 permits."""

    redirect_uris: list[str] = Field(min_length=1, max_length=20)
    client_name: str = Field(default="", max_length=100)
    grant_types: list[str] = list(_GRANTS)


def is_loopback(uri: str) -> bool:
    """Return whether a redirect goes to a program on the user's own computer."""
    return urlsplit(uri).scheme == "http" and urlsplit(uri).hostname in LOOPBACK


def may_redirect_to(uri: str) -> bool:
    """Return whether a client that registers itself may have a redirect."""
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:
        return False
    is_plain = uri.isascii() and uri.isprintable() and not set(uri) & set(" #@\\")
    is_listed = parts.scheme == "https" and parts.hostname in settings.CORECUBE_MCP_REDIRECT_HOSTS
    return is_plain and (is_loopback(uri) or is_listed)


@csrf_exempt
@require_POST
def register(request: HttpRequest) -> JsonResponse:
    """Register a client with those of its redirects that are permitted."""
    if not settings.OAUTH2_PROVIDER["DCR_ENABLED"]:
        return _refusal("access_denied", "This server registers no clients by itself.", 403)
    try:
        count_registration(address_of(request))
    except RefusedForNowError as error:
        response = _refusal("temporarily_unavailable", str(error), error.status)
        response.headers["Retry-After"] = str(error.retry_after_seconds)
        return response
    try:
        asked = _Metadata.model_validate_json(request.body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "body"
        return _refusal("invalid_client_metadata", f"{place}: {first['msg']}.")
    if _GRANTS[0] not in asked.grant_types:
        return _refusal("invalid_client_metadata", f"grant_types must include {_GRANTS[0]}.")
    client = Application(
        name=storable(" ".join(asked.client_name.split())),
        redirect_uris=" ".join(filter(may_redirect_to, asked.redirect_uris)),
        client_type=Application.CLIENT_PUBLIC,
        client_secret="",
        hash_client_secret=False,
        authorization_grant_type=Application.GRANT_AUTHORIZATION_CODE,
        registration_source=Application.RegistrationSource.DCR,
    )
    try:
        client.full_clean()
    except DjangoValidationError:
        hosts = ", ".join(settings.CORECUBE_MCP_REDIRECT_HOSTS)
        permitted = f"the user's own computer{' or ' if hosts else ''}{hosts}"
        return _refusal("invalid_redirect_uri", f"Redirects must go to {permitted}.")
    client.save()
    described = {
        "client_id": client.client_id,
        "client_id_issued_at": int(client.created.timestamp()),
        "client_name": client.name,
        "redirect_uris": client.redirect_uris.split(),
        "grant_types": _GRANTS,
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "scope": SCOPE,
    }
    return JsonResponse(described, status=201, headers={"Cache-Control": "no-store"})


def _refusal(error: str, description: str, status: int = 400) -> JsonResponse:
    return JsonResponse({"error": error, "error_description": description}, status=status)
