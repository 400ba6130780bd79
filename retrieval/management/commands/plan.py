"""`manage.py plan`: what a number of chunks needs."""

import json
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from corecube.commands import CoreCubeCommand
from retrieval.operations.capacity import FIGURES, CapacityPlan, Machine, capacity_plan

_GB = 10**9
_FEW_HOURS = 3


class Command(CoreCubeCommand):
    """Show the machines, memory, disk and time that a number of chunks needs, from measured and assumed numbers."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--chunks", type=_between(1, 10**11), required=True, help="number of chunks")
        parser.add_argument("--qps", type=_between(0, 10**6), default=10, help="searches per second (default: 10)")
        parser.add_argument("--cores", type=_between(1, 1024), default=16, help="of each machine (default: 16)")
        parser.add_argument(
            "--memory", type=_between(1, 65_536), default=128, help="of each machine, GiB (default: 128)"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object, with the numbers used")

    def handle(self, *_: Any, **options: Any) -> None:
        machine = Machine(options["cores"], options["memory"])
        plan = capacity_plan(chunks=options["chunks"], qps=options["qps"], machine=machine)
        if options["json"]:
            self.stdout.write(
                json.dumps({**asdict(plan), "changes": plan.changes, "figures": [asdict(it) for it in FIGURES]})
            )
        else:
            self.stdout.writelines(f"{it}\n" for it in _lines(plan))


def _between(low: int, high: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        # int() is also right for 1_000_000; 1e9 is how such numbers are often written.
        try:
            value = int(float(text)) if "e" in text.lower() else int(text)
        except (ValueError, OverflowError):
            value = low - 1
        if not low <= value <= high:
            raise ArgumentTypeError(f"must be a whole number from {low:,} to {high:,}")
        return value

    return number


def _lines(plan: CapacityPlan) -> Iterator[str]:
    memory = plan.resident_bytes / plan.database_machines / _GB
    yield f"{plan.chunks:,} chunks, {plan.qps:g} searches a second, machines with {plan.machine.cores} cores."
    yield f"Database machines: {plan.database_machines:,}"
    yield f"  shards: {plan.shards:,}"
    yield f"  memory: {memory:,.0f} GB of data on each of {plan.machine.memory_gib} GiB"
    yield f"  disk: {plan.disk_bytes / _GB:,.0f} GB together"
    yield f"  scan of the HNSW index: {plan.scan}, built in {_duration(plan.index_hours)}"
    files = (
        f"{plan.read_model_bytes / _GB:,.0f} GB of BM25 index and vector files each" if plan.read_model_bytes else ""
    )
    yield f"Web servers: {plan.web_machines}{f', {files}' if files else ''}"
    yield f"Embedding: {_duration(plan.embed_hours)} on one machine without GPU"
    yield f"Search: {plan.search_core_ms:,.0f} ms of processor time on all machines together"
    slowest = plan.slowest_leg_ms
    yield f"  slowest shard: {slowest.p50:,.0f} / {slowest.p95:,.0f} ms (p50 / p95, simulated)"
    for it in plan.changes:
        yield f"- {it}"
    yield f"Assumed: {', '.join(f'{it.name} {it.value:,.10g}' for it in FIGURES if not it.is_measured)}."


def _duration(hours: float) -> str:
    return f"{hours:,.0f} h" if hours > _FEW_HOURS else f"{hours * 60:,.0f} min"


def plan_tables() -> str:
    """Return the generated part of docs/scaling.md: plans by size, what changes, and the numbers that they use."""
    plans = [capacity_plan(chunks=10**power, qps=10) for power in range(6, 10)]
    changes = (
        f"## {it.chunks:,} chunks\n\n" + ("\n".join(f"- {change}" for change in it.changes) or "Nothing changes.")
        for it in plans
    )
    return "\n\n".join((_plan_table(plans), *changes, "## Numbers", _figure_table()))


def _plan_table(plans: list[CapacityPlan]) -> str:
    rows: list[tuple[str, Callable[[CapacityPlan], str]]] = [
        ("database machines", lambda it: f"{it.database_machines:,}"),
        ("shards", lambda it: f"{it.shards:,}"),
        ("scan of the HNSW index", lambda it: it.scan),
        ("data in memory, GB a machine", lambda it: f"{it.resident_bytes / it.database_machines / _GB:,.0f}"),
        ("disk, GB together", lambda it: f"{it.disk_bytes / _GB:,.0f}"),
        (
            "BM25 index and vector files, GB a web server",
            lambda it: f"{it.read_model_bytes / _GB:,.1f}" if it.read_model_bytes else "none",
        ),
        ("embedding on one machine", lambda it: _duration(it.embed_hours)),
        ("GPUs to embed in a day", lambda it: f"{it.gpus}"),
        ("building the HNSW index", lambda it: _duration(it.index_hours)),
        ("processor time of a search, ms together", lambda it: f"{it.search_core_ms:,.0f}"),
        ("slowest shard, p50 / p95 ms", lambda it: f"{it.slowest_leg_ms.p50:.0f} / {it.slowest_leg_ms.p95:.0f}"),
    ]
    return "\n".join(
        (
            f"| chunks | {' | '.join(f'{it.chunks:,}' for it in plans)} |",
            f"| --- |{' ---: |' * len(plans)}",
            *(f"| {name} | {' | '.join(map(shown, plans))} |" for name, shown in rows),
        )
    )


def _figure_table() -> str:
    rows = (
        f"| `{it.name}` | {it.value:,.10g} | {it.unit} | {'measured' if it.is_measured else 'assumed'} | {it.source} |"
        for it in FIGURES
    )
    return "\n".join(("| name | value | unit | | source |", "| --- | ---: | --- | --- | --- |", *rows))
