"""What the pages that search share: the user to search as, excluded connections, and how a failure is shown."""

import logging
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from django.http import QueryDict

from corecube.access import Principal, ScopeRequest
from corecube.errors import CoreCubeError
from corecube.models import User
from corecube.scope import AccessScope

logger = logging.getLogger(__name__)

_SERVER_ERROR: Final = 500


def people_for(viewer: User) -> Iterable[User]:
    """Return the active users that an admin can search as; nobody for anyone else."""
    return User.objects.filter(is_active=True).order_by("username") if viewer.is_admin else ()


def run_as_name(principal: Principal) -> str:
    """Return the user that an admin searches as; empty for the viewer's own search."""
    return principal.user.username if principal.actor else ""


def excluded_slugs(query: QueryDict) -> tuple[str, ...]:
    """Return the slugs of the connections that a query string excludes."""
    return tuple(dict.fromkeys(filter(None, query.getlist("without"))))


def excluding(slugs: Collection[str], scope: AccessScope) -> ScopeRequest:
    """Return a request without these connections; slugs out of scope are ignored, so that they reveal nothing."""
    own = {inclusion.connection.slug for inclusion in scope.included}
    return ScopeRequest(exclude=tuple(slug for slug in slugs if slug in own))


def failure_title(error: CoreCubeError) -> str:
    """Return a heading for an error, from its code: "Query too long"."""
    return error.code.replace("_", " ").capitalize()


def failed(error: CoreCubeError, page: str, context: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """Return the context of a page that shows an error, and its status; a server error is logged."""
    if error.status >= _SERVER_ERROR:
        logger.error("%s.failed code=%s", page, error.code, exc_info=error)
    failure = {"title": failure_title(error), "message": str(error)}
    return {**context, "failure": failure, "announcement": str(error)}, error.status
