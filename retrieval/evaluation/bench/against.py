"""Compare the working tree with an earlier commit: the same benchmark of both in turns, and ratios with intervals.

The commit is checked out into a temporary folder and runs with the same Python. Each side has its own variable folder,
so its own database server, whose code and migrations fit. A ratio cancels the speed of the machine.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
from django.conf import settings

from corecube.embedded.postmaster import read_postmaster
from corecube.embedded.server import embedded_server
from corecube.errors import InvalidRequestError, UnavailableError
from retrieval.evaluation.bench.corpus import Progress
from retrieval.evaluation.bench.plan import Plan
from retrieval.evaluation.bench.processes import cpu_seconds

_COMMAND: Final = "retrieval/management/commands/bench.py"
#: An option of the commits whose benchmark measures CPU time and readers over HTTP.
_MEASURES_CPU: Final = '"--readers"'
_PASSES: Final = 3  #: Where CPU time is measured from outside: the difference to a run with one pass.
_RESAMPLES: Final = 10_000
_SEEN: Final = 12  #: Characters of a commit's id.


@dataclass(frozen=True, slots=True)
class Ratio:
    """A figure of both sides; medians of the rounds, and the ratio new / old with its 95 % interval."""

    preset: str
    scope_percent: int
    figure: str
    old: float
    new: float
    ratio: float  #: Geometric mean of the rounds' ratios.
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class AgainstReport:
    """The comparison of the working tree with a commit."""

    commit: str
    chunks: int
    queries: int
    rounds: int
    is_cpu_from_outside: bool  #: Whether the commit's benchmark has no CPU time, so that it was measured from outside.
    ratios: tuple[Ratio, ...]


@dataclass(frozen=True, slots=True)
class _Side:
    """A checked-out version and its variable folder."""

    name: str
    tree: Path
    var: Path

    @property
    def measures_cpu(self) -> bool:
        """Whether its benchmark has CPU time and readers."""
        return _MEASURES_CPU in (self.tree / _COMMAND).read_text(encoding="utf-8")

    def prepare(self, plan: Plan) -> None:
        """Start the server and build the database, unless an earlier comparison did."""
        # While this process uses the server, it does not stop between the runs, and its CPU time can be read.
        embedded_server(self.var / "postgres")
        self._run(replace(plan, queries=1, passes=1, readers=()))

    def figures(self, plan: Plan, *, from_outside: bool) -> dict[str, float]:
        """Return the figures of one run of one preset in one scope, by name."""
        if not from_outside:
            return _figures(self._run(plan)[0])
        plan = replace(plan, readers=())
        _, once = self._run(replace(plan, passes=1))
        report, more = self._run(replace(plan, passes=_PASSES))
        searches = (_PASSES - 1) * plan.queries
        cpu_ms = {name: (more[name] - once[name]) * 1000 / searches for name in more}
        return _figures({**report, "cpu_ms": {**cpu_ms, "total": sum(cpu_ms.values())}})

    def _run(self, plan: Plan) -> tuple[Mapping[str, Any], Mapping[str, float]]:
        """Return a benchmark's report, and the CPU seconds that it took of its process and of the server."""
        before = self._cpu()
        done = subprocess.run(  # noqa: S603 -- our own program
            [sys.executable, "manage.py", "bench", *_options(plan), *self._reader_options(plan)],
            cwd=self.tree,
            # A thread that is still at work can abort the exit, after the report was written.
            env={**_inherited(), "CORECUBE_VAR_DIR": str(self.var), "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            text=True,
        )
        if not done.stdout.strip():
            raise UnavailableError(f"The benchmark of {self.name} failed, {done.returncode}:\n{done.stderr.strip()}")
        after = self._cpu()
        return json.loads(done.stdout.splitlines()[-1]), {name: after[name] - before[name] for name in after}

    def _reader_options(self, plan: Plan) -> list[str]:
        if not self.measures_cpu:
            return []
        return [f"--web-processes={plan.web_processes}", "--readers", *map(str, plan.readers)]

    def _cpu(self) -> dict[str, float]:
        used, postmaster = resource.getrusage(resource.RUSAGE_CHILDREN), read_postmaster(self.var / "postgres")
        server = cpu_seconds(postmaster.pid) if postmaster else 0.0
        return {"own": used.ru_utime + used.ru_stime, "server": server}


def bench_against(commit: str, plans: Sequence[Plan], *, rounds: int, progress: Progress) -> AgainstReport:
    """Run each plan, of one preset and one scope, of both versions in turns; raise InvalidRequestError.

    The databases are kept for later comparisons.
    """
    if rounds < 1:
        raise InvalidRequestError("There must be at least one round.")
    found: dict[tuple[int, str], list[dict[str, float]]] = {}
    with _checked_out(commit) as (full, tree):
        sides = _Side("old", tree, _var_of(full)), _Side("new", settings.BASE_DIR, settings.CORECUBE_VAR_DIR)
        from_outside = not all(side.measures_cpu for side in sides)
        for side in sides:
            progress(f"build, {side.name}", 0, rounds)
            side.prepare(plans[0])
        for number in range(rounds):
            # Neither side always runs first.
            turns = sides if number % 2 == 0 else sides[::-1]
            for (place, plan), side in product(enumerate(plans), turns):
                progress(f"{plan.preset} {plan.scopes[0]} %, {side.name}", number, rounds)
                found.setdefault((place, side.name), []).append(side.figures(plan, from_outside=from_outside))
    ratios = [
        _ratio(plan, name, [it[name] for it in found[place, "old"]], [it[name] for it in found[place, "new"]])
        for place, plan in enumerate(plans)
        for name in found[place, "old"][0]
    ]
    return AgainstReport(full, plans[0].chunks, plans[0].queries, rounds, from_outside, tuple(ratios))


def ratio_of(old: Sequence[float], new: Sequence[float]) -> tuple[float, float, float]:
    """Return the geometric mean of the rounds' ratios new / old, and its 95 % interval: a bootstrap over the rounds."""
    logs = np.log(np.array(new) / np.array(old))
    drawn = np.random.default_rng(0).choice(logs, (_RESAMPLES, len(logs))).mean(axis=1)
    low, high = np.exp(np.percentile(drawn, [2.5, 97.5])).tolist()
    return float(np.exp(logs.mean())), low, high


def _ratio(plan: Plan, figure: str, old: Sequence[float], new: Sequence[float]) -> Ratio:
    ratio, low, high = ratio_of(old, new)
    medians = float(np.median(old)), float(np.median(new))
    return Ratio(plan.preset, plan.scopes[0], figure, *medians, ratio, low, high)


def _figures(report: Mapping[str, Any]) -> dict[str, float]:
    total, cpu = report["latency_ms"]["total"], report["cpu_ms"]
    figures = {"p50 ms": total["p50"], "p95 ms": total["p95"]} | {f"CPU ms, {name}": cpu[name] for name in cpu}
    for it in report.get("over_http", ()):
        readers = f"{it['readers']} readers"
        figures |= {
            f"{readers}, per second": it["per_second"],
            f"{readers}, p50 ms": it["latency_ms"]["p50"],
            f"{readers}, p99 ms": it["latency_ms"]["p99"],
            f"{readers}, CPU ms": it["cpu_ms"]["total"],
        }
    return figures


def _options(plan: Plan) -> list[str]:
    fields = {"chunks": plan.chunks, "queries": plan.queries, "seed": plan.seed, "passes": plan.passes}
    scan = {"scan": plan.scan.scan, "scan-dimensions": plan.scan.dim, "oversample": plan.scan.oversample}
    options = [f"--{name}={value}" for name, value in {"preset": plan.preset, **fields, **scan}.items()]
    return [*options, f"--scope={plan.scopes[0]}", "--keep", "--no-first", "--json"]


def _inherited() -> dict[str, str]:
    """Return the environment without another database server."""
    return {name: value for name, value in os.environ.items() if not name.startswith("DATABASE_URL")}


def _var_of(commit: str) -> Path:
    folder: Path = settings.CORECUBE_VAR_DIR / "against" / commit[:_SEEN]
    folder.mkdir(parents=True, exist_ok=True)
    models = folder / "models"
    if not models.exists():
        models.symlink_to(settings.CORECUBE_MODELS_DIR)
    return folder


@contextmanager
def _checked_out(commit: str) -> Iterator[tuple[str, Path]]:
    """Yield the commit's full id and a temporary work tree of it."""
    full = _git("rev-parse", "--verify", "--end-of-options", f"{commit}^{{commit}}")
    with tempfile.TemporaryDirectory(prefix="corecube-against-") as folder:
        tree = Path(folder, "tree")
        _git("worktree", "add", "--detach", str(tree), full)
        try:
            yield full, tree
        finally:
            _git("worktree", "remove", "--force", str(tree))


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 -- git
            ["git", *arguments],  # noqa: S607 -- as the account finds it
            cwd=settings.BASE_DIR,
            capture_output=True,
            check=True,
            text=True,
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise InvalidRequestError(f"git {arguments[0]} failed: {getattr(error, 'stderr', error)}") from error
    return done.stdout.strip()
