"""Documents as resources: list them in pages, and read them."""

from typing import Any, Final
from uuid import UUID

from asgiref.sync import sync_to_async
from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp_types import (
    INVALID_PARAMS,
    Annotations,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from corecube.access import scope_for
from corecube.errors import NotFoundError
from retrieval.agents.tools import Caller, FetchToolIn, fetch
from retrieval.models import Document
from retrieval.models.document import id_in

PAGE: Final = 100  #: Documents in a page of the list.
_PREFIX: Final = "corecube://documents/"
_MIME: Final = "text/plain"
_MAX_URI: Final = 60 + len(_PREFIX)
_Context = ServerRequestContext[Any]


def document_id_in(uri: str) -> UUID | None:
    """Return the id of the document that a URI names; None for any other URI."""
    return id_in(uri.removeprefix(_PREFIX)) if uri.startswith(_PREFIX) and len(uri) <= _MAX_URI else None


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
