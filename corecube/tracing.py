"""OpenTelemetry spans, where OTEL_EXPORTER_OTLP_ENDPOINT is set; otherwise a call returns at once. Free of Django.

Spans have numbers, ids, names of stages, presets and models, and classes of errors: never a query, a text or a message.
The SDK reads the other standard variables itself.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any, Final

Value = str | int | float | bool
Headers = Iterable[tuple[bytes, bytes]]


class Traced:
    """A running span, or nothing."""

    def __init__(self, span: Any = None) -> None:  # noqa: ANN401 -- the SDK is an extra
        self._span = span

    def set(self, **attributes: Value) -> None:
        """Add attributes; `a__b` is written `a.b`."""
        if self._span is not None:
            self._span.set_attributes(_dotted(attributes))

    def rename(self, name: str) -> None:
        """Give the span another name."""
        if self._span is not None:
            self._span.update_name(name)


_NOTHING: Final = nullcontext(Traced())
_make_provider: Callable[[], Any] | None = None


def begin(make_provider: Callable[[], Any] | None = None) -> None:
    """Record spans from now on, with the provider that is made at the first span of a process."""
    global _make_provider  # noqa: PLW0603 -- set once, at the start
    _make_provider = make_provider or _otlp_provider
    _provider.cache_clear()


def end() -> None:
    """Send what is left, and record no more."""
    global _make_provider  # noqa: PLW0603
    if _make_provider is not None:
        _provider().shutdown()
        _make_provider = None


def span(
    name: str, *, parent: Headers | None = None, is_current: bool = True, **attributes: Value
) -> AbstractContextManager[Traced]:
    """Return a context manager that records a span around its block and yields it.

    It is below the current one, or, with the headers of a request, below the one that their `traceparent` names. An
    asynchronous generator needs `is_current=False`, as its end may run in another context. An error sets the status and
    `error.type`.
    """
    return _NOTHING if _make_provider is None else _recorded(name, parent, _dotted(attributes), is_current=is_current)


@contextmanager
def _recorded(
    name: str, parent: Headers | None, attributes: Mapping[str, Value], *, is_current: bool
) -> Iterator[Traced]:
    from opentelemetry.propagate import extract  # noqa: PLC0415 -- an extra
    from opentelemetry.trace import SpanKind, StatusCode, use_span  # noqa: PLC0415 -- an extra

    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in parent or ()}
    above, kind = (None, SpanKind.INTERNAL) if parent is None else (extract(headers), SpanKind.SERVER)
    found = _provider().get_tracer("corecube").start_span(name, context=above, kind=kind, attributes=attributes)
    # What the SDK would record of an exception contains its message.
    entered = use_span(found, record_exception=False, set_status_on_exception=False) if is_current else nullcontext()
    try:
        with entered:
            yield Traced(found)
    except Exception as error:
        found.set_attribute("error.type", type(error).__name__)
        found.set_status(StatusCode.ERROR)
        raise
    finally:
        found.end()


def _dotted(attributes: Mapping[str, Value]) -> dict[str, Value]:
    return {name.replace("__", "."): value for name, value in attributes.items()}


@cache
def _provider() -> Any:  # noqa: ANN401 -- the SDK is an extra
    return (_make_provider or _otlp_provider)()


def _otlp_provider() -> Any:  # noqa: ANN401 -- the SDK is an extra
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 -- an extra
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource  # noqa: PLC0415 -- an extra
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 -- an extra
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 -- an extra

    # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence.
    resource = Resource({SERVICE_NAME: "corecube"}).merge(Resource.create())
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider
