"""Documents as resources: list them in pages, read them, and follow changes."""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import anyio
from asgiref.sync import sync_to_async
from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    Annotations,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    SubscriptionFilter,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    TextResourceContents,
)

from corecube.access import scope_for
from corecube.database import release_connection
from corecube.errors import NotAuthenticatedError, NotFoundError
from retrieval.agents.tools import Caller, FetchToolIn, fetch
from retrieval.models import Document
from retrieval.models.document import id_in

PAGE: Final = 100  #: Documents in a page of the list.
_PREFIX: Final = "corecube://documents/"
_MIME: Final = "text/plain"
_MAX_URI: Final = 60 + len(_PREFIX)
_MAX_FOLLOWED: Final = 100  #: Documents that a client can follow in one stream.
_MAX_STREAMS: Final = 64  #: Streams of a process, each of which holds a thread.
_POLL_SECONDS: Final = 5.0
_Context = ServerRequestContext[Any]
_streams: Final[set[object]] = set()


async def list_resources(caller: Caller, _: _Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
    """Return a page of the documents in scope, in the order of their ids; raise MCPError for an invalid cursor."""
    return await sync_to_async(_page)(caller, params.cursor if params else None)


def _page(caller: Caller, cursor: str | None) -> ListResourcesResult:
    scope = scope_for(caller.principal)
    documents = Document.objects.in_scope(scope).order_by("pk")
    if cursor is not None:
        after = id_in(cursor)
        if after is None:
            raise MCPError(INVALID_PARAMS, "The cursor is not valid.")
        documents = documents.filter(pk__gt=after)
    found = list(documents.only("title", "connection_id", "modified_at")[: PAGE + 1])
    resources = [
        Resource(
            uri=f"{_PREFIX}{it.pk}",
            name=it.title,
            description=f"Document of {scope.inclusion(it.connection_id).connection.name}",
            mime_type=_MIME,
            annotations=Annotations(last_modified=it.modified_at.isoformat()) if it.modified_at else None,
        )
        for it in found[:PAGE]
    ]
    return ListResourcesResult(resources=resources, next_cursor=str(found[PAGE - 1].pk) if len(found) > PAGE else None)


async def list_templates(_: _Context, __: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
    """Return the form of a document's address, with an id of a search result."""
    template = ResourceTemplate(
        uri_template=f"{_PREFIX}{{id}}",
        name="document",
        title="Document",
        description="A document, or with an id of search a passage.",
        mime_type=_MIME,
    )
    return ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(caller: Caller, _: _Context, params: ReadResourceRequestParams) -> ReadResourceResult:
    """Return the text of a document; raise MCPError outside the scope."""
    uri = str(params.uri)
    wanted = uri.removeprefix(_PREFIX) if uri.startswith(_PREFIX) and len(uri) <= _MAX_URI else ""
    try:
        found = await sync_to_async(fetch)(FetchToolIn(id=wanted or "none"), caller)
    except NotFoundError as error:
        raise MCPError(INVALID_PARAMS, str(error), {"uri": uri[:_MAX_URI]}) from error
    meta = {"title": found.title, "url": found.url, "truncated": found.truncated}
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=_MIME, text=found.text, _meta=meta)])


async def listen(
    caller: Caller, context: _Context, params: SubscriptionsListenRequestParams
) -> SubscriptionsListenResult:
    """Tell a client of changes of documents in scope until it goes, or its access ends."""
    uris = (params.notifications.resource_subscriptions or [])[:_MAX_FOLLOWED]
    if len(_streams) >= _MAX_STREAMS:
        raise MCPError(INTERNAL_ERROR, "Too many clients follow documents. Try again later.")
    bus, stream = InMemorySubscriptionBus(), object()
    handler = ListenHandler(bus)
    honored = params.model_copy(update={"notifications": SubscriptionFilter(resource_subscriptions=uris)})
    _streams.add(stream)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_follow, caller, uris, bus, handler)
            result = await handler(context, honored)
            tasks.cancel_scope.cancel()
    finally:
        _streams.discard(stream)
    return result


async def _follow(caller: Caller, uris: Sequence[str], bus: InMemorySubscriptionBus, handler: ListenHandler) -> None:
    seen = await sync_to_async(_versions)(caller, uris)
    while True:
        await anyio.sleep(_POLL_SECONDS)
        try:
            now = await sync_to_async(_versions)(caller, uris)
        except NotAuthenticatedError:
            handler.close()
            return
        for uri in uris:
            if seen.get(uri) != now.get(uri):
                await bus.publish(ResourceUpdated(uri=uri))
        seen = now


def _versions(caller: Caller, uris: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return what changes with a document, for those in scope now; raise NotAuthenticatedError without access."""
    ids = {id_in(uri.removeprefix(_PREFIX)): uri for uri in uris if uri.startswith(_PREFIX)}
    documents = Document.objects.in_scope(scope_for(caller.again())).filter(pk__in=[it for it in ids if it])
    found: list[tuple[UUID, str, str]] = list(documents.values_list("pk", "fingerprint", "title"))
    release_connection()
    return {ids[pk]: (fingerprint, title) for pk, fingerprint, title in found}
