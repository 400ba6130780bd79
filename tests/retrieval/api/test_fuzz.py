"""What the APIs' descriptions allow, sent to a running server: nothing fails, and no answer is undescribed."""

import time

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from corecube.models import ApiKey, Connection
from tests.profiles import PROFILE

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
#: Seconds that one operation has.
BUDGET = {"default": 0.1, "nightly": 0.5}[PROFILE]
#: What reads a model's files, which a test's encoder has none of.
NEEDS_A_MODEL = ("POST /api/v1/indexes", "/indexes/{number}/switch", "/indexes/{number}/build")


@pytest.fixture
def secrets(world):
    """Return the secrets of an admin and of a user who may push."""
    inbox = Connection.objects.create(
        slug="inbox", name="Inbox", kind="push", compartment=world.runbooks.compartment, sensitivity=1
    )
    key, secret = ApiKey.issue(user=world.bob, name="robot")
    key.push_connections.add(inbox)
    return {"admin": world.key("alice"), "user": secret}


@pytest.mark.parametrize("person", ["admin", "user"])
@pytest.mark.parametrize(
    "description", ["/api/openapi.json", "/v1/openapi.json", "/v2/openapi.json", "/api/dify/openapi.json"]
)
def test_no_request_breaks_an_api(server, secrets, description, person):
    schema = schemathesis.openapi.from_url(f"{server}{description}")
    headers = {"Authorization": f"Bearer {secrets[person]}"}
    operations = [it.ok() for it in schema.get_all_operations() if not it.ok().label.endswith(NEEDS_A_MODEL)]
    problems = {it.label: problem for it in operations if (problem := fuzz(it, headers))}
    assert operations
    assert problems == {}


def fuzz(operation, headers):
    """Send one operation a few requests, each different, and return what was wrong; when its time is over, no more."""
    ends, problems = time.monotonic() + BUDGET, []

    @given(case=operation.as_strategy())
    @settings(
        max_examples={"default": 2, "nightly": 6}[PROFILE],
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def send(case):
        if time.monotonic() < ends:
            response = case.call(headers=headers, timeout=20)
            try:
                case.validate_response(response, checks=CHECKS)
            except BaseExceptionGroup as error:
                # Raised, it would be lost: the same request is not sent again when the time is over.
                problems.extend(map(str, error.exceptions))

    send()
    return "\n".join(problems)
