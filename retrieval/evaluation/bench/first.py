"""Duration of the first search of a new process, with and without a warm-up."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Final

from django.conf import settings

from corecube.errors import UnavailableError
from retrieval.evaluation.bench.plan import Plan
from retrieval.evaluation.bench.web_server import database_url

READ_MODEL_DIRS: Final = ("CORECUBE_BM25_DIR", "CORECUBE_VECTORS_DIR")  #: Settings of the read models' folders.
_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True)
class FirstSearch:
    """The duration of the first search of a new process."""

    is_warmed: bool
    milliseconds: float
    warm_up_seconds: float  #: Duration of the warm-up, without the start of the process; 0 for none.
    is_restarted: bool = False


def first_search(plan: Plan, percent: int, *, is_warmed: bool, is_restarted: bool = False) -> FirstSearch:
    """Return the first search's duration in a new process; raise UnavailableError. `is_restarted` is only reported."""
    inherited = {name: value for name, value in os.environ.items() if name != "DATABASE_URL_FILE"}
    arguments = {
        "plan": asdict(plan),
        "percent": percent,
        "is_warmed": is_warmed,
        "read_models": {name: str(getattr(settings, name)) for name in READ_MODEL_DIRS},
    }
    done = subprocess.run(  # noqa: S603 -- our own program
        [sys.executable, "-m", "retrieval.evaluation.bench.first_process", json.dumps(arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={**inherited, "DATABASE_URL": database_url()},
        cwd=settings.BASE_DIR,
        timeout=_SECONDS,
        check=False,
        text=True,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no error message"])[-1]
        raise UnavailableError(f"The first search of a new process failed: {last}")
    return FirstSearch(**json.loads(done.stdout.splitlines()[-1]), is_restarted=is_restarted)
