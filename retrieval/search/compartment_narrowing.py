"""Narrowing a request to compartments, within what its principal may see."""

from typing import ClassVar

from corecube.access import Principal, ScopeRequest, scope_for
from corecube.errors import NotFoundError
from corecube.models import Connection


class UnknownCompartmentError(NotFoundError):
    """No compartment with that name is visible to you."""

    code: ClassVar[str] = "unknown_compartment"
    param: ClassVar[str] = "compartments"


def within_compartments(principal: Principal, narrowing: ScopeRequest, compartments: tuple[str, ...]) -> ScopeRequest:
    """Return `narrowing`, limited further to the connections of some compartments.

    Unchanged without compartments. Raises UnknownConnectionError, and UnknownCompartmentError for a
    compartment none of whose connections is visible, whether or not it exists.
    """
    left = [it.connection.slug for it in scope_for(principal, narrowing).included]
    if not compartments:
        return narrowing
    visible = Connection.objects.filter(pk__in=scope_for(principal).connection_ids).order_by("slug")
    compartment_of = dict(visible.values_list("slug", "compartment__slug"))
    if not set(compartments) <= set(compartment_of.values()):
        raise UnknownCompartmentError
    wanted = tuple(slug for slug in left if compartment_of.get(slug) in compartments)
    # An empty list would include everything; excluding everything leaves nothing.
    return ScopeRequest(include=wanted) if wanted else ScopeRequest(tuple(compartment_of), tuple(compartment_of))
