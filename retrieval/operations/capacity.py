"""What a number of chunks needs: machines, memory, disk and time, computed from measured numbers.

`capacity.toml` holds the numbers, each with where it comes from. Numbers that were not measured are marked as assumed.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from corecube.data import read_toml

_GIB: Final = 2**30
_HOUR_MS: Final = 3_600_000
_DAY_SECONDS: Final = 86_400
_SEARCHES: Final = 10_000  #: Of a simulation: the 95th percentile varies by about 1 % between seeds.


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number that the plan is computed from."""

    name: str
    value: float
    unit: str
    source: str  #: Where a measured number comes from, or why an assumed one was chosen.
    is_measured: bool


_TABLES: Final = read_toml("retrieval.operations", "capacity.toml")
FIGURES: Final = tuple(Figure(**row) for row in _TABLES["figure"])
_VALUES: Final[Mapping[str, float]] = {it.name: it.value for it in FIGURES}
#: Milliseconds that each measured search waited for its slowest leg, on a shard of `sample_chunks`.
LEGS_MS: Final = tuple(float(time) for time, searches in _TABLES["legs_ms"] for _ in range(searches))
#: Bytes per chunk of the HNSW index by what it is walked by, the most exact first.
SCANS: Final[Mapping[str, float]] = {it: _VALUES[f"hnsw_{it}_bytes"] for it in ("halfvec", "int8", "binary")}


@dataclass(frozen=True, slots=True)
class Machine:
    """What one machine has."""

    cores: int = 16
    memory_gib: int = 128


@dataclass(frozen=True, slots=True)
class Times:
    """Percentiles of simulated searches in milliseconds."""

    p50: float
    p95: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityPlan:
    """What a number of chunks needs."""

    chunks: int
    qps: float  #: Searches per second.
    machine: Machine
    scan: str  #: What the HNSW index is walked by.
    shards: int  #: 1: one PostgreSQL, without Citus.
    database_machines: int
    web_machines: int
    resident_bytes: int  #: What all database machines together should hold in memory.
    disk_bytes: int  #: Of all database machines together.
    read_model_bytes: int  #: BM25 index and vector files of each web server; 0: too large for one.
    search_core_ms: float  #: Processor time of a search over everything, of all machines together.
    slowest_leg_ms: Times  #: Until the slowest shard has answered.
    embed_hours: float  #: Reading, chunking and embedding everything on one machine, without GPU.
    gpus: int  #: GPUs that embed everything in a day; 0 if one machine does.
    index_hours: float  #: Building the HNSW index on the database machines.

    @property
    def changes(self) -> tuple[str, ...]:
        """What is different from a small installation."""
        return tuple(_changes(self))


def capacity_plan(*, chunks: int, qps: float, machine: Machine | None = None) -> CapacityPlan:
    """Return what `chunks` (at least 1) and `qps` searches per second over all of them need."""
    each = machine or Machine()
    scan = min(SCANS, key=lambda name: _database_machines(chunks, qps, each, name))
    machines = _database_machines(chunks, qps, each, scan)
    shards = max(_shards(chunks), machines)
    core_ms = chunks * (_VALUES["embed_core_ms"] + _VALUES["ingest_core_ms"])
    embed_hours = core_ms / each.cores / _HOUR_MS
    per_gpu = _VALUES["gpu_chunks_per_second"] * _DAY_SECONDS
    return CapacityPlan(
        chunks=chunks,
        qps=qps,
        machine=each,
        scan=scan,
        shards=shards,
        database_machines=machines,
        web_machines=_machines_for(qps * _VALUES["search_own_core_ms"], each),
        resident_bytes=round(chunks * _resident_bytes(scan)),
        disk_bytes=round(chunks * _stored_bytes(scan) * _VALUES["disk_factor"]),
        read_model_bytes=_read_model_bytes(chunks, each),
        search_core_ms=_VALUES["search_own_core_ms"] + _shards_core_ms(chunks, shards, scan),
        slowest_leg_ms=slowest_of(shard_times(chunks / shards, scan), shards=shards, searches=_SEARCHES, seed=0),
        embed_hours=embed_hours,
        gpus=0 if embed_hours <= _DAY_SECONDS / 3600 else ceil(chunks / per_gpu),
        index_hours=chunks * _VALUES["hnsw_build_core_ms"] / (machines * each.cores) / _HOUR_MS,
    )


def slowest_of(times: Sequence[float], *, shards: int, searches: int, seed: int) -> Times:
    """Return the percentiles of searches that each wait for the slowest of some shards.

    The time of a shard is drawn from `times`, in milliseconds, independently of the others. The same seed gives the
    same result. A percentile is the lowest time that at least this share of the searches does not exceed.
    """
    draw = random.Random(seed)  # noqa: S311 -- a simulation
    slowest = sorted(max(draw.choices(times, k=shards)) for _ in range(searches))
    return Times(*(slowest[ceil(share * searches) - 1] for share in (0.5, 0.95)))


def shard_times(chunks: float, scan: str) -> tuple[float, ...]:
    """Return the measured times, in milliseconds, extrapolated to a shard of this size and to a scan."""
    return tuple(it + _added_ms(chunks, scan) for it in LEGS_MS)


def _added_ms(chunks: float, scan: str) -> float:
    """Return what a search in a shard takes more than in the measured one; smaller shards count as that one."""
    growth = max(0.0, chunks - _VALUES["sample_chunks"]) * _VALUES["leg_ms_per_million"] / 1e6
    return growth + _VALUES[f"hnsw_{scan}_ms"]


def _shards_core_ms(chunks: int, shards: int, scan: str) -> float:
    return shards * (_VALUES["search_shard_core_ms"] + _added_ms(chunks / shards, scan))


def _shards(chunks: int) -> int:
    return ceil(chunks / _VALUES["shard_chunks"])


def _database_machines(chunks: int, qps: float, machine: Machine, scan: str) -> int:
    by_memory = ceil(chunks * _resident_bytes(scan) / _usable_bytes(machine))
    return max(by_memory, _machines_for(qps * _shards_core_ms(chunks, _shards(chunks), scan), machine))


def _machines_for(core_ms_per_second: float, machine: Machine) -> int:
    return max(1, ceil(core_ms_per_second / 1000 / (machine.cores * _VALUES["busy_share"])))


def _usable_bytes(machine: Machine) -> float:
    return machine.memory_gib * _GIB * _VALUES["memory_share"]


def _resident_bytes(scan: str) -> float:
    rows = _VALUES["rows_bytes"] + _VALUES["other_index_bytes"] + _VALUES["term_count_bytes"]
    return SCANS[scan] + _VALUES["fulltext_index_bytes"] + rows * _VALUES["resident_share"]


def _stored_bytes(scan: str) -> float:
    names = ("rows_bytes", "term_count_bytes", "fulltext_index_bytes", "other_index_bytes")
    return SCANS[scan] + sum(_VALUES[name] for name in names)


def _read_model_bytes(chunks: int, machine: Machine) -> int:
    size = round(chunks * (_VALUES["bm25_bytes"] + _VALUES["vector_file_bytes"]))
    return size if size <= _usable_bytes(machine) else 0


def _changes(plan: CapacityPlan) -> Iterator[str]:
    if plan.shards > 1:
        yield f"Distribute the documents by Citus: `manage.py distribute --shards {plan.shards}`."
    if plan.scan != "halfvec":
        yield f"Quantised scan: build the embedding index with `--scan {plan.scan}`."
    if not plan.read_model_bytes:
        yield (
            "No machine holds the BM25 index and the vector files: set `CORECUBE_BM25=no` and `CORECUBE_VECTORS=no`; "
            "`helix` then searches by vectors alone."
        )
    if plan.gpus:
        yield (
            f"Embed by a service or GPUs (`CORECUBE_EMBEDDER`): one machine takes {plan.embed_hours / 24:,.1f} days. "
            f"GPUs that take one day: {plan.gpus}."
        )
    if plan.search_core_ms > _VALUES["partition_core_ms"]:
        yield (
            "Partition by connection: separate installations, each with the connections that are searched together, so "
            f"that a search does not take {plan.search_core_ms / 1000:,.1f} s of processor time."
        )
