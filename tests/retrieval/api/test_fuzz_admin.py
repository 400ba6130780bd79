"""What an admin may do over the APIs, sent to an installation that is thrown away: nothing fails, all is described.

`CORECUBE_FUZZ_SECONDS` gives each operation more than its usual time, for a longer look.
"""

import functools
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
import requests
import schemathesis
from django.conf import settings as configured
from django.core.management import call_command
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    ensure_resource_availability,
    response_schema_conformance,
    status_code_conformance,
    use_after_free,
)

from tests.installation import Observer, new_installation
from tests.profiles import PROFILE
from tests.race import until

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
DESCRIPTIONS = ("/api/openapi.json", "/v1/openapi.json", "/v2/openapi.json", "/api/dify/openapi.json")
#: Seconds that one operation has.
BUDGET = float(os.environ.get("CORECUBE_FUZZ_SECONDS") or {"default": 0.05, "nightly": 0.4}[PROFILE])
EXAMPLES = max(2, int(20 * BUDGET))
#: What takes things away comes last, so that the others find something.
ORDER = ("get", "put", "post", "patch", "delete")

SEED = """
import json, os, pathlib
from corecube.access import Principal
from corecube.models import ApiKey, Compartment, Connection, Grant, User
from retrieval.answers.conversations.asking import ask, start
from retrieval.evaluation.experiments import ExperimentRequest, start as start_experiment
from retrieval.evaluation.question_sets import save_case, set_named
from retrieval.evaluation.runs import RunRequest, queue_run
from retrieval.evaluation.sweeps import SweepRequest, queue_sweep
from retrieval.ranking.tuning import Range
from retrieval.ingest.services import queue_sync
from retrieval.ingest.sync import sync_connection
from retrieval.models import Document, LanguageModel

root = User.objects.create_user("root", password="x", is_staff=True, is_superuser=True)
general = Compartment.objects.create(slug="general", name="General")
Grant.objects.create(user=root, compartment=general, clearance=3)
folder = pathlib.Path(os.environ["CORECUBE_FOLDER_ROOTS"])
(folder / "rollback.md").write_text("# Rolling back\\n\\nDrain the queue, then roll back the release.")
common = {"compartment": general, "sensitivity": 1}
notes = Connection.objects.create(slug="notes", name="Notes", kind="folder", config={"path": str(folder)}, **common)
for kind in ("push", "upload"):
    Connection.objects.create(slug=kind, name=kind, kind=kind, **common)
sync_connection(notes)
questions = set_named("Questions", actor=root)
save_case(questions, "rolling back", actor=root)
for number in range(8):
    save_case(questions, f"rolling back {number}", actor=root)
run = queue_run(questions, RunRequest("corecube"), principal=Principal(root))
answer = ask(start(root), "rolling back")
asked = SweepRequest(preset="corecube", ranges=[Range("blend.dense", (0.1, 0.2))])
sweep = queue_sweep(questions, asked, principal=Principal(root))
sides = {"first": ("corecube", 0), "second": ("helix", 0)}
experiment = start_experiment(
    ExperimentRequest(name="Agents", share=5, max_questions=9, **sides), actor=Principal(root)
)
LanguageModel.objects.create(slug="local", name="Local", base_url="http://127.0.0.1:9/v1", model="none")
own, secret = ApiKey.issue(user=root, name="fuzz")
print(json.dumps({
    "secret": secret,
    "own_key_id": str(own.pk),
    "key_id": str(ApiKey.issue(user=root, name="spare")[0].pk),
    "job_id": str(queue_sync(notes, actor=root).pk),
    "run_id": str(run.pk),
    "question_set": questions.slug,
    "response_id": f"resp_{answer.pk.hex}",
    "sweep_id": str(sweep.pk),
    "experiment_id": str(experiment.pk),
    "document_id": str(Document.objects.get().pk),
}))
"""


@dataclass(frozen=True)
class Installation:
    address: str
    secret: str
    known: dict[str, str]
    log: Path

    @property
    def headers(self):
        return {"Authorization": f"Bearer {self.secret}"}

    def operations(self):
        for description in DESCRIPTIONS:
            yield from (it.ok() for it in described(f"{self.address}{description}").get_all_operations())

    def known_here(self, path):
        """Return values of an address's parameters that lead to something."""
        names = {"section-sets": "report", "presets": "corecube", "models": "corecube"}
        name = next((value for part, value in names.items() if f"/{part}/" in path), "")
        slug = "local" if "language-models" in path else "upload" if path.endswith("/uploads") else "notes"
        return {**self.known, "slug": slug, "name": name, "number": 1}


#: The description of an API at an address, read once.
described = functools.cache(schemathesis.openapi.from_url)


@pytest.fixture(scope="module")
def installation(tmp_path_factory):
    call_command("models", "fetch", verbosity=0)
    log = tmp_path_factory.mktemp("fuzz") / "web.log"
    notes = tmp_path_factory.mktemp("notes")
    with new_installation(CORECUBE_WARM_UP="no", CORECUBE_FOLDER_ROOTS=str(notes)) as environment:
        observe = Observer(environment)
        try:
            known = json.loads(observe(SEED).strip().splitlines()[-1])
            with serving(environment, log) as address:
                yield Installation(address, known.pop("secret"), known, log)
        finally:
            observe.end()


class serving:  # noqa: N801 -- reads as a function
    """Run the installation's web server on a free port."""

    def __init__(self, environment, log):
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        command = (sys.executable, "-m", "uvicorn", "corecube.asgi:application", f"--port={port}", "--lifespan=off")
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                [*command, "--no-access-log", "--no-proxy-headers", "--timeout-graceful-shutdown=5"],
                cwd=configured.BASE_DIR,
                env=environment,
                stdout=out,
                stderr=out,
            )

    def __enter__(self):
        until(self._answers, seconds=120)
        return self.address

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)

    def _answers(self):
        assert self.process.poll() is None, "the web server ended"
        try:
            return urllib.request.urlopen(f"{self.address}/healthz", timeout=5).status == 200
        except OSError:
            time.sleep(0.05)
            return False


def fuzz(operation, installation):
    """Send one operation requests, every other one about what there is, and return what was wrong."""
    ends, numbers = time.monotonic() + BUDGET, count()
    known = installation.known_here(operation.path)

    @given(case=operation.as_strategy())
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def send(case):
        number = next(numbers)
        if number and time.monotonic() > ends:
            return
        if number % 2 == 0:
            case.path_parameters.update({name: known[name] for name in case.path_parameters if name in known})
        response = sent(case, installation, number)
        case.validate_response(response, checks=CHECKS)

    try:
        send()
    except BaseExceptionGroup as error:
        return "\n".join(map(str, error.exceptions))
    except Exception as error:  # noqa: BLE001 -- looked at by the test
        return str(error)
    return ""


#: What an operation does something with; the rest of a body is generated.
BODIES = {
    "POST /api/v1/search": {"query": "rollback"},
    "POST /api/v1/evidence": {"subject": "rollback"},
    "POST /api/v1/context-pack": {"query": "rollback"},
    "PUT /api/v1/documents": {
        "connection": "push",
        "external_id": "one",
        "text": "Drain the queue.",
        "uri": "https://x/y",
    },
    "POST /api/v1/connections": {"name": "More", "kind": "push", "compartment": "general", "config": {}, "secrets": {}},
    "POST /api/v1/connections/check": {"kind": "folder", "config": {"path": "/nowhere"}, "secrets": {}},
    "POST /api/v1/connections/{slug}/check": {"config": {"path": "/nowhere"}},
    "PATCH /api/v1/connections/{slug}": {"name": "Notes", "compartment": "general", "config": {"path": "/nowhere"}},
    "PUT /api/v1/presets/{name}/draft": {"values": {"fusion.pool": 50}, "note": "A try"},
    "POST /api/v1/jobs/{job_id}/retry": {"items": ["one"]},
    "POST /api/v1/evaluation/sets": {"name": "More"},
    "POST /api/v1/evaluation/sets/{question_set}/import": {"files": ["query,document,grade\nrollback,one,3"]},
    "POST /api/v1/evaluation/sets/{question_set}/draw": {"sample": "frequent", "number": 3, "seed": 1},
    "POST /api/v1/evaluation/runs": {"question_set": "questions", "preset": "corecube", "overrides": {}, "name": "x"},
    "PUT /api/v1/evaluation/gates": {"question_set": "questions", "preset": "corecube", "max_loss": 0.5},
    "PUT /api/v1/evaluation/schedules": {"question_set": "questions", "preset": "corecube", "min_mean": 0.5},
    "POST /api/v1/evaluation/experiments": {
        "name": "x",
        "a": {"preset": "corecube", "version": 0},
        "b": {"preset": "helix", "version": 0},
        "share": 5,
        "max_questions": 9,
    },
    "POST /api/v1/evaluation/sweeps": {
        "question_set": "questions",
        "preset": "corecube",
        "method": "grid",
        "ranges": [{"name": "blend.dense", "values": [0.3], "low": 0.1, "high": 0.9}],
        "max_p95_ms": 50.0,
    },
    "POST /api/v1/presets/{name}/gate": {"number": 0},
    "POST /api/v1/indexes": {"model": "bge-small-en-v1.5"},
    "POST /api/v1/language-models": {
        "name": "More",
        "base_url": "http://127.0.0.1:9/v1",
        "model": "none",
        "api_key": "x",
        "max_retries": 0,
    },
    "POST /api/v1/language-models/test": {"base_url": "http://127.0.0.1:9/v1", "model": "none", "api_key": "x"},
    "PATCH /api/v1/language-models/{slug}": {"name": "Local", "model": "none", "tokenizer": "bge-small-en-v1.5"},
    "POST /api/v1/routing": {"user": "root", "language_model": "local"},
    "POST /api/v1/recall": {"query": "rollback", "project": "one"},
    "POST /api/v1/remember": {"text": "Drain it.", "title": "Queue", "project": "one"},
    "POST /api/v1/keys": {"name": "More", "user": "root", "compartments": ["general"]},
    "POST /v1/responses": {"model": "corecube", "input": "rollback"},
    "POST /v1/chat/completions": {"model": "corecube", "messages": [{"role": "user", "content": "rollback"}]},
}
DEEP = json.loads("[" * 500 + "]" * 500)
SPOILS = ("a\ud800", "a\0b", DEEP, 10**400, "x" * 70_000, {"\ud800": "\0"}, -(2**63) - 1, float("nan"), "\0")


def sent(case, installation, number):
    """Return the answer to a request; every other one with a body is valid but for one value that no store can hold."""
    if number % 2 or case.media_type != "application/json":
        return case.call(headers=installation.headers, timeout=30)
    request = case.as_transport_kwargs(headers=installation.headers)
    body = request.pop("json", None)
    wanted = BODIES.get(case.operation.label, {})
    places = [*wanted, *body] if isinstance(body, dict) else []
    if places:
        body |= wanted
        if number:
            turn = number // 2 - 1
            body = spoiled(body, places[turn % len(places)], SPOILS[turn % len(SPOILS)])
    request["data"] = json.dumps(body)
    return requests.request(**request, timeout=30)


def spoiled(body, place, value):
    """Return a body with a value at a place of it; in a list or an object, in place of the first thing in it."""
    inner = body[place]
    if isinstance(inner, dict) and inner:
        return {**body, place: spoiled(inner, next(iter(inner)), value)}
    if isinstance(inner, list) and inner:
        first = inner[0]
        return {
            **body,
            place: [spoiled(first, next(iter(first)), value) if isinstance(first, dict) and first else value],
        }
    return {**body, place: value}


def test_no_request_of_an_admin_breaks_an_api(installation):
    operations = sorted(installation.operations(), key=lambda it: ORDER.index(it.method.lower()))
    problems = {it.label: problem for it in operations if (problem := fuzz(it, installation))}
    assert len(operations) > 50
    assert problems == {}
    lines = installation.log.read_text().splitlines()
    assert [line for line in lines if re.search(r" (ERROR|CRITICAL) |^Traceback", line)] == []


#: Walks of several requests through a part of an API, most of which take something from an earlier response.
WALKS = int(os.environ.get("CORECUBE_FUZZ_WALKS") or {"default": 2, "nightly": 30}[PROFILE])
WALK_CHECKS = [*CHECKS, use_after_free, ensure_resource_availability]
#: The parts, and how many links must lead from one success to another.
PARTS = {
    "/api/v1/(connections|jobs)": 5,
    "/api/v1/(documents|search|recall|evidence|context-pack|lifeline)": 4,
    "/api/v1/evaluation/": 9,
    "/api/v1/keys": 2,
    "/api/v1/language-models": 3,
    "/api/v1/(presets|section-sets)": 3,
    "/v1/(models|responses)": 4,
}


def walk_class(paths, installation):
    """Return a state machine that walks along the links of some paths; it collects which succeeded, and problems."""
    description = f"{installation.address}/{paths.split('/')[1]}/openapi.json"
    schema = described(description).include(path_regex=f"^{paths}")
    known = installation.known

    class Walk(schema.as_state_machine()):
        followed, problems = set(), []

        def step(self, taken):
            output = super().step(taken)
            if taken.transition and taken.is_applied and output.response.status_code < 300:
                source = self.recorder.cases[taken.transition.parent_id].value.operation
                self.followed.add((source.label, taken.case.operation.label))
            return output

        def before_call(self, case):
            case.body = BODIES.get(case.operation.label, case.body)
            if case.operation.label in {"POST /api/v1/connections", "POST /api/v1/language-models"}:
                case.body = {**case.body, "name": f"More {case.id}"}
            if case.path_parameters.get("key_id") == known["own_key_id"]:
                case.path_parameters["key_id"] = known["key_id"]

        def get_call_kwargs(self, case):  # noqa: ARG002 -- overrides
            return {"headers": installation.headers, "timeout": 30}

        def validate_response(self, response, case, **more):
            try:
                case.validate_response(response, checks=WALK_CHECKS, recorder=self.recorder, transport_kwargs=more)
            except BaseExceptionGroup as error:
                self.problems.append("\n".join(map(str, error.exceptions)))

    return Walk


@pytest.mark.parametrize("paths", PARTS)
def test_no_walk_along_the_links_breaks_an_api(installation, paths):
    walk = walk_class(paths, installation)
    for number in range(WALKS):
        # Of two examples the first is the shortest possible. A run ends with them: more would expect the same state.
        seed(number)(walk).run(
            settings=settings(
                max_examples=2,
                stateful_step_count=15,
                deadline=None,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
        )
    assert walk.problems == []
    assert len(walk.followed) >= PARTS[paths]
