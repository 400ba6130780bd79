"""`uvicorn retrieval.evaluation.bench.web_application:application`: the web server, with known query vectors."""

import json
import os
from pathlib import Path
from unittest.mock import patch

import django
import numpy as np
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "corecube.settings")
django.setup(set_prefix=False)

from retrieval.evaluation.bench.readers import ARGUMENTS  # noqa: E402 -- Django must be ready
from retrieval.evaluation.bench.workload import KnownQueries, installed_model  # noqa: E402
from retrieval.index import active  # noqa: E402

_arguments = json.loads(os.environ[ARGUMENTS])
settings.CORECUBE_BM25_DIR = Path(_arguments["bm25_dir"])
with np.load(_arguments["vectors"]) as _stored:
    _vectors = dict(zip(_stored["texts"].tolist(), _stored["vectors"], strict=True))
_encoder = KnownQueries(_vectors, installed_model())
# The synthetic index has no model on any machine. The import below starts the warm-up, which needs it already.
patch.object(active, "encoder_of", lambda _row: _encoder).start()

from corecube.asgi import application as application  # noqa: E402, PLC0414
