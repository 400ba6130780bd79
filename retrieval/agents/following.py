"""Changes of documents that a client follows: by `subscriptions/listen`, or in a session by its stream of events."""

from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
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
    INVALID_REQUEST,
    EmptyResult,
    SubscribeRequestParams,
    SubscriptionFilter,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)

from corecube.access import Principal, scope_for
from corecube.database import release_connection
from corecube.errors import CoreCubeError, NotAuthenticatedError, OverloadedError
from retrieval.agents.resources import document_id_in
from retrieval.agents.sessions import MAX_FOLLOWED, Session, SessionNotFoundError, owner_of
from retrieval.agents.tools import Caller
from retrieval.api.openai.streaming import KEEP_ALIVE, event
from retrieval.models import Document

_MAX_STREAMS: Final = 64  #: Streams of a process, each of which holds a thread.
_MAX_OWN_STREAMS: Final = 16  #: Streams of a principal in a process.
_POLL_SECONDS: Final = 5.0
_Context = ServerRequestContext[Any]
_streams: Final[Counter[str]] = Counter()


class TooManyStreamsError(OverloadedError, code="too_many_streams"):
    """Too many clients follow documents. Try again later."""


def require_stream(principal: Principal) -> None:
    """Raise TooManyStreamsError where a principal can have no further stream."""
    if _streams.total() >= _MAX_STREAMS or _streams[owner_of(principal)] >= _MAX_OWN_STREAMS:
        raise TooManyStreamsError(reason="streams", retry_after_seconds=60)


async def listen(
    caller: Caller, context: _Context, params: SubscriptionsListenRequestParams
) -> SubscriptionsListenResult:
    """Report changes of documents in scope to a client until it goes, or its access ends."""
    uris = (params.notifications.resource_subscriptions or [])[:MAX_FOLLOWED]
    try:
        require_stream(caller.principal)
    except TooManyStreamsError as error:
        raise MCPError(INTERNAL_ERROR, str(error)) from None
    bus = InMemorySubscriptionBus()
    handler = ListenHandler(bus)
    honored = params.model_copy(update={"notifications": SubscriptionFilter(resource_subscriptions=uris)})
    with _stream(caller):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_publish, caller, uris, bus, handler)
            result = await handler(context, honored)
            tasks.cancel_scope.cancel()
    return result


async def _publish(caller: Caller, uris: Sequence[str], bus: InMemorySubscriptionBus, handler: ListenHandler) -> None:
    seen = await sync_to_async(_versions)(caller, uris)
    while True:
        await anyio.sleep(_POLL_SECONDS)
        try:
            now = await sync_to_async(_versions)(caller, uris)
        except NotAuthenticatedError:
            handler.close()
            return
        for uri in uris:
            if seen[uri] != now[uri]:
                await bus.publish(ResourceUpdated(uri=uri))
        seen = now


async def subscribe(caller: Caller, _: _Context, params: SubscribeRequestParams) -> EmptyResult:
    """Follow a document in the caller's session; raise MCPError without a session, or for another URI."""
    uri = str(params.uri)
    if document_id_in(uri) is None:
        raise MCPError(INVALID_PARAMS, "This is no URI of a document.")

    def follow(session: Session) -> None:
        session.follow(uri, _versions(caller, [uri])[uri])

    return await _in_session(caller, follow)


async def unsubscribe(caller: Caller, _: _Context, params: UnsubscribeRequestParams) -> EmptyResult:
    """Follow a document no longer; raise MCPError without a session."""
    return await _in_session(caller, lambda session: session.unfollow(str(params.uri)))


async def _in_session(caller: Caller, act: Any) -> EmptyResult:  # noqa: ANN401 -- takes a session
    if caller.session is None:
        raise MCPError(INVALID_REQUEST, "Send the header Mcp-Session-Id that `initialize` returned.")
    try:
        await sync_to_async(act)(caller.session)
    except CoreCubeError as error:
        raise MCPError(INVALID_REQUEST, str(error)) from error
    return EmptyResult()


async def updates(caller: Caller, session: Session) -> AsyncGenerator[bytes, None]:
    """Yield the changes of what a session follows as server-sent events, until it or its principal's access ends."""
    with _stream(caller):
        while True:
            try:
                changed = await sync_to_async(_changed)(caller, session)
            except (NotAuthenticatedError, SessionNotFoundError):
                return
            yield KEEP_ALIVE
            for uri in changed:
                message = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}}
                yield event(message, "message")
            await anyio.sleep(_POLL_SECONDS)


def _changed(caller: Caller, session: Session) -> tuple[str, ...]:
    return session.changed(_versions(caller, session.followed()))


def _versions(caller: Caller, uris: Sequence[str]) -> dict[str, str]:
    """Return what changes with each document, empty outside the scope; raise NotAuthenticatedError without access."""
    ids = {uri: document_id_in(uri) for uri in uris}
    documents = Document.objects.in_scope(scope_for(caller.again())).filter(pk__in=[it for it in ids.values() if it])
    found: list[tuple[UUID, str, str]] = list(documents.values_list("pk", "fingerprint", "title"))
    release_connection()
    versions = {pk: sha256(f"{fingerprint} {title}".encode()).hexdigest()[:16] for pk, fingerprint, title in found}
    return {uri: versions.get(id_, "") if id_ else "" for uri, id_ in ids.items()}


@contextmanager
def _stream(caller: Caller) -> Iterator[None]:
    """Count a stream while it is open."""
    owner = owner_of(caller.principal)
    _streams[owner] += 1
    try:
        yield
    finally:
        _streams[owner] -= 1
        if not _streams[owner]:
            del _streams[owner]
