"""What the first search of a new process takes, warmed up and not."""

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

_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True)
class FirstSearch:
    """What the first search of a new process took."""

    #: After warming up; else the search had to open everything itself.
    is_warmed: bool
    milliseconds: float
    #: What warming up took, beside the start of the process; 0 without.
    warm_up_seconds: float
    #: Whether the database server was started anew before it, too.
    is_restarted: bool = False


def first_search(plan: Plan, percent: int, *, is_warmed: bool, is_restarted: bool = False) -> FirstSearch:
    """Start a process on the database in use and return what its first search took; raise UnavailableError.

    `is_restarted` is told as it is given.
    """
    inherited = {name: value for name, value in os.environ.items() if name != "DATABASE_URL_FILE"}
    asked = {
        "plan": asdict(plan),
        "percent": percent,
        "is_warmed": is_warmed,
        "bm25_dir": str(settings.CORECUBE_BM25_DIR),
    }
    done = subprocess.run(  # noqa: S603 -- our own program
        [sys.executable, "-m", "retrieval.evaluation.bench.first_process", json.dumps(asked)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={**inherited, "DATABASE_URL": database_url()},
        cwd=settings.BASE_DIR,
        timeout=_SECONDS,
        check=False,
        text=True,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise UnavailableError(f"The first search of a new process failed: {last}")
    return FirstSearch(**json.loads(done.stdout.splitlines()[-1]), is_restarted=is_restarted)
