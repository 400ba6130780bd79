"""`uvicorn --factory retrieval.evaluation.bench.web_application:application`: the web server, with known vectors."""

import json
import os
from pathlib import Path
from typing import Any
from unittest.mock import patch

import django
import numpy as np
from django.conf import settings


def application() -> Any:  # noqa: ANN401 -- an ASGI application
    """Return the web server's application, which takes the vectors of queries from a file."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "corecube.settings")
    django.setup(set_prefix=False)
    # Django must be ready before they are imported.
    from retrieval.evaluation.bench.first import READ_MODEL_DIRS  # noqa: PLC0415
    from retrieval.evaluation.bench.readers import ARGUMENTS  # noqa: PLC0415
    from retrieval.evaluation.bench.workload import KnownQueries, installed_model  # noqa: PLC0415
    from retrieval.index import active  # noqa: PLC0415

    arguments = json.loads(os.environ[ARGUMENTS])
    for name in READ_MODEL_DIRS:
        setattr(settings, name, Path(arguments[name]))
    with np.load(arguments["vectors"]) as stored:
        vectors = dict(zip(stored["texts"].tolist(), stored["vectors"], strict=True))
    encoder = KnownQueries(vectors, installed_model())
    # The synthetic index has no model on any machine. The import below starts the warm-up, which needs it already.
    patch.object(active, "encoder_of", lambda _row: encoder).start()
    from corecube.asgi import application as served  # noqa: PLC0415

    return served
