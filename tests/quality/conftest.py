"""The sample company in a real store, embedded by the real model."""

from pathlib import Path

import pytest
from django.conf import settings

from retrieval import runtime
from retrieval.encoders import load_encoder

_MODEL: Path = settings.CORECUBE_MODELS_DIR / settings.CORECUBE_MODEL


@pytest.fixture(scope="session")
def real_encoder():
    if not (_MODEL / "manifest.json").is_file():
        pytest.skip(f"the model {_MODEL.name} is not here: run manage.py models fetch")
    return load_encoder(_MODEL)


@pytest.fixture
def real_engine(small_engine, real_encoder, monkeypatch):
    monkeypatch.setattr(runtime, "encoder", lambda: real_encoder)
