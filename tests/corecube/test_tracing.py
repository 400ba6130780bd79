"""Spans of OpenTelemetry: what is recorded, that none of it is text, and that it arrives."""

import http.server
import os
import subprocess
import sys
import threading

import httpx2
import pytest
from django.conf import settings
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from corecube import tracing
from corecube.celery import app, mark_lines, unmark_lines
from retrieval.ingest.dispatch import work_until_idle
from retrieval.ingest.services import queue_sync
from retrieval.models import LanguageModel
from tests.fake_llm import FakeLLM
from tests.race import until

TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.fixture
def spans():
    """Record spans in memory; return a function that returns those that have ended, by name."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing.begin(lambda: provider)
    yield lambda: {it.name: it for it in exporter.get_finished_spans()}
    tracing.end()


@pytest.fixture
def trusting(monkeypatch):
    from corecube.asgi import application

    monkeypatch.setattr(application, "trusted_hosts", type(application.trusted_hosts)(["127.0.0.1"]))


def ask(server, world, **headers):
    """Ask for a streamed answer, to its end."""
    asked = {
        "model": "corecube",
        "messages": [{"role": "user", "content": "rollback passphrase zebra"}],
        "stream": True,
    }
    bearer = {"Authorization": f"Bearer {world.key('alice')}", **headers}
    with FakeLLM() as llm:
        llm.says("The answer is a quagga [1].")
        LanguageModel.objects.create(slug="m", name="M", base_url=llm.url, model="fake-small", is_default=True)
        answer = httpx2.post(f"{server}/v1/chat/completions", json=asked, headers=bearer, timeout=30, trust_env=False)
    assert "quagga" in answer.text
    return answer


def above(found, name):
    """Return the names of the spans above one, the nearest first."""
    by_id = {it.context.span_id: it for it in found.values()}
    span, names = found[name], []
    while span.parent and span.parent.span_id in by_id:
        span = by_id[span.parent.span_id]
        names.append(span.name)
    return names


def test_a_request_has_the_spans_of_its_search_its_stages_and_its_models(spans, world, server):
    answer = ask(server, world)
    request = "POST v1/chat/completions"
    until(lambda: request in spans())
    found = spans()
    assert above(found, "search") == [request]
    assert above(found, "stage fulltext")[-2:] == ["search", request]
    assert above(found, "model call")[-2:] == ["search", request]
    assert above(found, "language model") == [request]
    assert found[request].attributes == {
        "corecube.request_id": answer.headers["x-request-id"],
        "http.request.method": "POST",
        "http.route": "v1/chat/completions",
        "http.response.status_code": 200,
    }
    assert found["search"].attributes["corecube.hits"] > 0
    assert found["language model"].attributes == {"corecube.model": "fake-small"}


def test_no_span_has_any_text(spans, world, server):
    ask(server, world)
    until(lambda: "POST v1/chat/completions" in spans())
    written = " ".join(it.to_json() for it in spans().values())
    for text in ("zebra", "passphrase", "quagga", "zanzibar", "Rolling back", "alice"):
        assert text not in written


@pytest.mark.parametrize("is_trusted", [True, False])
def test_only_a_trusted_proxys_trace_is_continued(spans, world, server, request, is_trusted):
    if is_trusted:
        request.getfixturevalue("trusting")
    httpx2.get(f"{server}/healthz", headers={"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}, trust_env=False)
    until(spans)
    (span,) = spans().values()
    assert (f"{span.context.trace_id:032x}" == TRACE) is is_trusted


def test_an_error_leaves_its_class_and_not_its_message(spans):
    with pytest.raises(ValueError, match="zebra"), tracing.span("work"):
        raise ValueError("zebra")
    written = spans()["work"].to_json()
    assert '"error.type": "ValueError"' in written
    assert '"status_code": "ERROR"' in written
    assert "zebra" not in written


def test_a_task_and_the_steps_of_a_sync_are_traced(spans, governed):
    task = app.tasks["retrieval.ingest.tasks.work"]
    queue_sync(governed.runbooks, actor=None)
    mark_lines(task_id="t1", task=task)
    work_until_idle()
    unmark_lines()
    found = spans()
    for name in ("sync list", "sync process", "sync complete"):
        assert above(found, name) == [task.name]
        assert found[name].attributes["corecube.kind"] == "folder"


def run(script, tmp_path, **variables):
    environment = {**os.environ, "CORECUBE_VAR_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "corecube.settings"}
    command = [sys.executable, "-c", f"import django; django.setup(); {script}"]
    return subprocess.run(
        command, cwd=settings.BASE_DIR, env={**environment, **variables}, capture_output=True, text=True, check=False
    )


def test_without_an_address_nothing_is_recorded_or_loaded(tmp_path):
    script = (
        "from corecube.tracing import span; assert span('a', x=1) is span('b'); import sys;"
        "print('opentelemetry.sdk' in sys.modules)"
    )
    done = run(script, tmp_path)
    assert (done.stdout, done.returncode) == ("False\n", 0), done.stderr


def test_spans_of_a_process_arrive_by_otlp(tmp_path):
    received = []

    class Receiver(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append((self.path, ExportTraceServiceRequest.FromString(body)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            """Print nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.server_address[1]}"
        compression = {"OTEL_EXPORTER_OTLP_COMPRESSION": "none", "OTEL_SERVICE_NAME": "cube"}
        script = "from corecube.tracing import span\nwith span('work', corecube__hits=3): pass"
        done = run(f"exec({script!r})", tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=endpoint, **compression)
        server.shutdown()
    assert done.returncode == 0, done.stderr
    ((path, sent),) = received
    (resource,) = sent.resource_spans
    (span,) = resource.scope_spans[0].spans
    assert (path, span.name, span.attributes[0].value.int_value) == ("/v1/traces", "work", 3)
    assert {it.key: it.value.string_value for it in resource.resource.attributes}["service.name"] == "cube"
