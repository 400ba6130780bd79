"""onnxruntime's telemetry stays off, in processes whose home folder is empty."""

import os
import subprocess
import sys

import pytest
from django.conf import settings


def files_left(home, script):
    """Return what a process leaves in its home folder."""
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    environment |= {"HOME": str(home), "DJANGO_SETTINGS_MODULE": "corecube.settings"}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)
    return [path for path in home.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    "script",
    [
        "from retrieval.encoders import load_encoder",
        "from retrieval.encoders.quantise import QuantType",
        "import django; django.setup(); import onnxruntime",
    ],
)
def test_importing_leaves_nothing_in_the_home_folder(tmp_path, script):
    assert files_left(tmp_path, script) == []


def test_loading_a_model_leaves_nothing_in_the_home_folder(tmp_path):
    model = settings.CORECUBE_MODELS_DIR / settings.CORECUBE_MODEL
    if not model.exists():
        pytest.skip("the model is not there; `manage.py models fetch` fetches it")
    script = (
        f"from pathlib import Path; from retrieval.encoders import load_encoder; load_encoder(Path({str(model)!r}))"
    )
    assert files_left(tmp_path, script) == []
