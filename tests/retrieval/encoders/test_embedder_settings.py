"""What the environment says of embedding services."""

import os
import subprocess
import sys

import pytest
from django.conf import settings


def read(**variables):
    """Return what a fresh process makes of the variables."""
    shown = "from django.conf import settings as s; print(s.CORECUBE_EMBEDDER, s.CORECUBE_NEXT_EMBEDDER)"
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "corecube.settings", **variables}
    command = [sys.executable, "-c", shown]
    return subprocess.run(command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, check=False)


def test_two_services_are_read_each_by_its_own_names(tmp_path):
    key = tmp_path / "key"
    key.write_text("sesame\n")
    found = read(
        CORECUBE_EMBEDDER="openai",
        CORECUBE_EMBEDDER_MODEL="m-large",
        CORECUBE_EMBEDDER_API_KEY_FILE=str(key),
        CORECUBE_NEXT_EMBEDDER="voyage",
        CORECUBE_NEXT_EMBEDDER_DIMENSIONS="1024",
        CORECUBE_NEXT_EMBEDDER_QUERY_TIMEOUT_MS="250",
    ).stdout
    current, following = found.split("} {")
    assert all(part in current for part in ("'kind': 'openai'", "'model': 'm-large'", "'api_key': 'sesame'"))
    assert all(part in following for part in ("'kind': 'voyage'", "'dim': 1024", "'query_timeout_seconds': 0.25"))
    assert "sesame" not in following


@pytest.mark.parametrize(
    "variables",
    [
        {"CORECUBE_EMBEDDER": "psychic"},
        {"CORECUBE_EMBEDDER": "openai", "CORECUBE_EMBEDDER_URL": "https://me:secret@host/v1/embeddings"},
        {"CORECUBE_EMBEDDER": "openai", "CORECUBE_EMBEDDER_DIMENSIONS": "9000"},
    ],
)
def test_junk_stops_the_start_with_one_sentence(variables):
    done = read(**variables)
    assert done.returncode
    assert (
        done.stderr.strip()
        .splitlines()[-1]
        .startswith("django.core.exceptions.ImproperlyConfigured: CORECUBE_EMBEDDER")
    )
    assert "secret" not in done.stderr.strip().splitlines()[-1]
