"""`manage.py bench`: measure a preset with a given number of chunks."""

import json
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import chain, groupby
from typing import Any, Final, TypeAlias

from django.core.management.base import CommandError
from django.db import DatabaseError
from psycopg import Error as ServerError
from tqdm import tqdm

from corecube.commands import CoreCubeCommand
from retrieval.evaluation.bench.against import AgainstReport, bench_against
from retrieval.evaluation.bench.budget import BudgetRow
from retrieval.evaluation.bench.chat import ChatPhase, ChatReport, OverloadReport, bench_chat, bench_overload
from retrieval.evaluation.bench.corpus import Progress
from retrieval.evaluation.bench.plan import Plan
from retrieval.evaluation.bench.push import PushReport, bench_push
from retrieval.evaluation.bench.runner import BenchReport, ScopeFigures, bench
from retrieval.evaluation.bench.synthesis import DIM
from retrieval.evaluation.bench.workload import KnownQueries
from retrieval.index.scans import ScanChoice
from retrieval.models import EmbeddingIndex
from retrieval.presets.catalog import DEFAULT_PRESET, TUNED, preset_named

_MIB: Final = 2**20

_ALL: Final = "all"


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """The figures of several presets on the same chunks."""

    presets: tuple[BenchReport, ...]


_Report: TypeAlias = BenchReport | SuiteReport | AgainstReport | PushReport | ChatReport | OverloadReport


class Command(CoreCubeCommand):
    """Measure a preset's latency, index sizes and build times on synthetic chunks, in a separate database."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--chunks", type=int, default=100_000, help="1,000 to 5,000,000 (default: 100,000)")
        parser.add_argument(
            "--preset", default=DEFAULT_PRESET, help=f'a preset, or "{_ALL}" (default: {DEFAULT_PRESET})'
        )
        parser.add_argument(
            "--scope", type=int, nargs="+", default=[50], metavar="PERCENT", help="chunks in scope (default: 50)"
        )
        parser.add_argument("--queries", type=int, default=200, help="timed searches per scope (default: 200)")
        parser.add_argument(
            "--passes", type=int, default=1, help="runs per query; from 2 on the fastest is reported too (default: 1)"
        )
        parser.add_argument("--seed", type=int, default=0, help="seed of the chunks and queries (default: 0)")
        parser.add_argument(
            "--scan", choices=[*EmbeddingIndex.Scan.values], default="halfvec", help="vectors of the HNSW index"
        )
        parser.add_argument(
            "--scan-dimensions", type=int, default=0, metavar="N", help=f"prefix length, of {DIM} (default: a third)"
        )
        parser.add_argument("--oversample", type=float, default=0.0, metavar="X", help="candidates per requested hit")
        parser.add_argument("--keep", action="store_true", help="keep the database and reuse it for the same chunks")
        parser.add_argument("--push", type=int, metavar="N", help="instead: push N small documents over the API")
        parser.add_argument(
            "--chat", type=int, metavar="N", help="instead: stream N answers from a web server on the sample company"
        )
        parser.add_argument("--streams", type=int, default=50, help="concurrent answers (default: 50)")
        parser.add_argument(
            "--overload", type=int, metavar="N", help="instead: send N searches per web server connection at once"
        )
        parser.add_argument(
            "--against", metavar="COMMIT", help="compare with a commit: run both in turns, and print ratios"
        )
        parser.add_argument("--rounds", type=int, default=5, help="rounds of --overload and --against (default: 5)")
        parser.add_argument(
            "--readers",
            type=int,
            nargs="*",
            default=[1, 4, 16],
            metavar="N",
            help="concurrent readers over HTTP in the first scope; no number skips them (default: 1 4 16)",
        )
        parser.add_argument("--web-processes", type=int, default=1, metavar="N", help="of the web server (default: 1)")
        parser.add_argument("--no-first", action="store_true", help="skip the first search of a new process")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *_: Any, **options: Any) -> None:
        report: _Report
        try:
            report = self._measure(options)
        except (DatabaseError, ServerError) as error:
            raise CommandError(f"The database failed: {error}") from error
        self.stdout.write(json.dumps(asdict(report)) if options["json"] else "\n".join(_lines(report)))

    def _measure(self, options: dict[str, Any]) -> _Report:
        with self._progress() as progress:
            if options["overload"]:
                return bench_overload(options["overload"], rounds=options["rounds"], progress=progress)
            if options["chat"]:
                return bench_chat(options["chat"], streams=options["streams"], progress=progress)
            if options["push"]:
                return bench_push(options["push"], seed=options["seed"], progress=progress)
            plans = _plans(options)
            if options["against"]:
                each = [replace(plan, scopes=(percent,)) for plan in plans for percent in plan.scopes]
                return bench_against(options["against"], each, rounds=options["rounds"], progress=progress)
            last, first = plans[-1], not options["no_first"]
            reports = [
                bench(it, keep=options["keep"] or it is not last, first=first, progress=progress) for it in plans
            ]
            return SuiteReport(tuple(reports)) if len(reports) > 1 else reports[0]

    @contextmanager
    def _progress(self) -> Iterator[Progress]:
        with tqdm(disable=None, file=self.stderr, leave=False) as bar:

            def progress(step: str, done: int, total: int) -> None:
                bar.set_description_str(step, refresh=False)
                bar.n, bar.total = done, total
                bar.refresh()

            yield progress


def _plans(options: Mapping[str, Any]) -> list[Plan]:
    prefix = options["scan"] == EmbeddingIndex.Scan.PREFIX
    dim = options["scan_dimensions"] or (DIM // 3 if prefix else 0)
    scan = ScanChoice(options["scan"], dim, options["oversample"]).of(KnownQueries({}))
    return [
        Plan(
            preset=preset_named(name).name,
            chunks=options["chunks"],
            scopes=tuple(options["scope"]),
            queries=options["queries"],
            seed=options["seed"],
            passes=options["passes"],
            scan=scan,
            readers=tuple(options["readers"]),
            web_processes=options["web_processes"],
        )
        for name in (TUNED if options["preset"] == _ALL else [options["preset"]])
    ]


def _lines(report: _Report) -> Iterator[str]:
    match report:
        case SuiteReport():
            return chain.from_iterable(_bench_lines(it) for it in report.presets)
        case AgainstReport():
            return _against_lines(report)
        case OverloadReport():
            return _overload_lines(report)
        case PushReport():
            return _push_lines(report)
        case ChatReport():
            return _chat_lines(report)
        case _:
            return _bench_lines(report)


def _bench_lines(report: BenchReport) -> Iterator[str]:
    reused = ", from an earlier run" if report.reused else ""
    yield f"{report.preset}, {report.chunks:,} chunks, {report.dim} dimensions, seed {report.seed}{reused}"
    dim = f" of {report.scan['dim']} dimensions" if report.scan["dim"] else ""
    yield f"HNSW index scan: {report.scan['scan']}{dim}, at least {report.scan['oversample']:g} candidates per hit."
    yield from _table("built in seconds", report.build_seconds_by_step, report.build_seconds, 1)
    yield from _table("index MiB", report.index_bytes_by_name, report.index_bytes, _MIB)
    for scope in report.scopes:
        yield from _scope_lines(scope)
    yield from _reader_lines(report)
    yield ""
    yield from _first_lines(report)
    server = "on another machine" if report.server_bytes is None else f"{report.server_bytes / _MIB:,.0f} MiB"
    yield f"Memory at the end: this process {report.own_bytes / _MIB:,.0f} MiB, database server {server}."
    if report.server_bytes is not None:
        total = report.own_bytes + report.server_bytes
        yield f"Total {total / _MIB:,.0f} MiB, with all processes of the server; shared memory is counted once."
    yield f"Peak memory of this process, including document generation: {report.peak_rss_bytes / _MIB:,.0f} MiB."
    if report.embedded_by:
        yield f"{report.embedded_by} embedded each query; the search used a known vector, as the texts are synthetic."
    else:
        yield "No model is on this machine: queries used known vectors, and nothing was embedded."


def _first_lines(report: BenchReport) -> Iterator[str]:
    p95 = report.latency_ms["total"]["p95"]
    for it in report.first_searches:
        how = f"after a warm-up of {it.warm_up_seconds:.1f} s" if it.is_warmed else "without a warm-up"
        times = f", {it.milliseconds / p95:.1f} times the p95" if p95 else ""
        where = "a new process and a restarted server" if it.is_restarted else "a new process"
        yield f"First search of {where} {how}: {it.milliseconds:.0f} ms{times}."


def _reader_lines(report: BenchReport) -> Iterator[str]:
    if report.over_http:
        yield ""
        yield f"  over HTTP, scope {report.scope_percent} %"
        yield f"  {'readers':>8} {'per second':>10} {'p50':>8} {'p95':>8} {'p99':>8}  CPU ms per search"
    for it in report.over_http:
        row = it.latency_ms
        figures = f"{it.per_second:>10.1f} {row['p50']:>8.1f} {row['p95']:>8.1f} {row['p99']:>8.1f}"
        failed = f"; failed: {_counts(it.failed)}" if it.failed else ""
        yield f"  {it.readers:>8} {figures}  {_cpu_text(it.cpu_ms)}{failed}"


def _against_lines(report: AgainstReport) -> Iterator[str]:
    yield f"New: the working tree. Old: {report.commit}. {report.chunks:,} chunks, {report.queries} queries per run."
    how = "from outside, by the difference of runs" if report.is_cpu_from_outside else "by both benchmarks"
    yield f"Rounds: {report.rounds}; ratios with 95 % intervals over the rounds. CPU time is measured {how}."
    runs = groupby(report.ratios, key=lambda it: (it.preset, it.scope_percent))
    for (preset, percent), ratios in runs:
        yield ""
        yield f"  {preset + f', scope {percent} %':<26} {'old':>8} {'new':>8} {'new / old':>10}"
        for it in ratios:
            yield f"  {it.figure:<26} {it.old:>8.1f} {it.new:>8.1f} {it.ratio:>10.3f}  [{it.low:.3f}, {it.high:.3f}]"


def _cpu_text(cpu_ms: Mapping[str, float]) -> str:
    """Return "45.1 (own 30.1, server 15.0)"; without the server where it is on another machine."""
    if "total" not in cpu_ms:
        return f"own {cpu_ms['own']:.1f}, server on another machine"
    return f"{cpu_ms['total']:.1f} (own {cpu_ms['own']:.1f}, server {cpu_ms['server']:.1f})"


def _table(title: str, rows: Mapping[str, float], total: float, unit: int) -> Iterator[str]:
    yield ""
    yield f"  {title}"
    for name, value in {**rows, "total": total}.items():
        yield f"  {name:<32} {value / unit:>10,.1f}"


def _scope_lines(scope: ScopeFigures) -> Iterator[str]:
    recall = "" if scope.recall_against_exact is None else f", recall against exact {scope.recall_against_exact:.3f}"
    yield ""
    passes = f" in {scope.passes} passes" if scope.passes > 1 else ""
    yield f"  scope {scope.scope_percent} %, {scope.queries} queries{passes}{recall}"
    walk = scope.walk_ms
    yield f"  HNSW index scan only: recall {scope.walk_recall:.3f}, p50 {walk['p50']:.1f} ms, p95 {walk['p95']:.1f} ms"
    yield f"  {'ms':<16} {'p50':>8} {'p95':>8} {'p99':>8}"
    for stage, row in scope.latency_ms.items():
        yield f"  {stage:<16} {row['p50']:>8.2f} {row['p95']:>8.2f} {row['p99']:>8.2f}"
    if fastest := scope.quickest_ms:
        yield f"  {'total, fastest':<16} {fastest['p50']:>8.2f} {fastest['p95']:>8.2f} {fastest['p99']:>8.2f}"
    yield f"  CPU ms per search: {_cpu_text(scope.cpu_ms)}"
    yield "  " + ", ".join(f"{code} {count}" for code, count in scope.notes.items())
    if scope.budget:
        yield from _budget_lines(scope.budget)


def _budget_lines(rows: Iterable[BudgetRow]) -> Iterator[str]:
    yield ""
    yield f"  {'step, ms':<16} {'budget':>8} {'p50':>8} {'p95':>8}"
    for row in rows:
        budget = "" if row.budget_ms is None else f"{row.budget_ms:g}"
        over = "" if row.is_kept else "  over"
        yield f"  {row.step:<16} {budget:>8} {row.taken_ms['p50']:>8.2f} {row.taken_ms['p95']:>8.2f}{over}"


def _push_lines(report: PushReport) -> Iterator[str]:
    yield f"{report.documents:,} documents, {report.chunks:,} chunks, {report.failed:,} failed"
    for phase in report.phases:
        yield ""
        rate = phase.documents / phase.seconds
        yield f"  {phase.name}: {phase.documents:,} in {phase.seconds:.1f} s, {rate:.1f} per second"
        yield f"  {'documents':>12} {'per second':>10} {'MiB':>8}"
        for point in phase.points:
            yield f"  {point.documents:>12,} {point.documents_per_second:>10.1f} {point.rss_bytes / _MIB:>8.0f}"
        yield f"  memory after the first fifth: {phase.grown_bytes / _MIB:+.1f} MiB"


def _chat_lines(report: ChatReport) -> Iterator[str]:
    for phase in report.phases:
        yield from _phase_lines(phase)
    yield ""
    yield f"  {'answers':>12} {'MiB':>8} {'threads':>8}"
    for point in report.points:
        yield f"  {point.answers:>12,} {point.rss_bytes / _MIB:>8.0f} {point.threads:>8}"
    yield f"  memory after the first fifth: {report.grown_bytes / _MIB:+.1f} MiB"
    yield f"  open connections: {report.connections}, in use afterwards: {report.connections_in_use}"


def _phase_lines(phase: ChatPhase) -> Iterator[str]:
    rate = phase.answers / phase.seconds
    yield f"{phase.name}: {phase.answers:,} answers, {phase.streams} concurrent, {rate:.1f} per second"
    yield f"  {'ms':<12} {'p50':>8} {'p95':>8} {'p99':>8}"
    rows = {"first word": phase.first_ms, "of which first": phase.joining_ms, "total": phase.total_ms}
    for name, row in rows.items():
        yield f"  {name:<12} {row['p50']:>8.0f} {row['p95']:>8.0f} {row['p99']:>8.0f}"
    yield f"  CPU time per answer in the server process: {phase.cpu_ms:.1f} ms"
    yield f"  failed: {_counts(phase.errors)}; degraded: {_counts(phase.degraded)}"


def _overload_lines(report: OverloadReport) -> Iterator[str]:
    rate = int(report.outcomes.get("200", 0)) / report.seconds
    yield f"{report.at_once:,} concurrent searches, {report.connections} connections, {report.rounds} rounds"
    yield f"  {'outcome':<20} {'count':>8} {'p50 ms':>8} {'p95 ms':>8} {'p99 ms':>8}"
    for name, count in sorted(report.outcomes.items()):
        row = report.milliseconds[name]
        yield f"  {name:<20} {count:>8,} {row['p50']:>8.0f} {row['p95']:>8.0f} {row['p99']:>8.0f}"
    yield f"  answered: {rate:.1f} per second; open connections: {report.opened}, in use afterwards: {report.at_work}"
    for name, value in report.metrics.items():
        if value:
            yield f"  {name} {value:g}"


def _counts(counted: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counted.items()) or "none"
