"""The capacity plan: its simulation by hand-worked numbers, its growth with chunks and load, and the command."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from retrieval.operations.capacity import FIGURES, LEGS_MS, Machine, Times, capacity_plan, shard_times, slowest_of

VALUES = {it.name: it.value for it in FIGURES}


def test_one_shard_has_the_percentiles_of_its_times():
    # Half of 1, 2, 3, 4 are at most 2; 95 of 100 draws need the 4, as only 75 are at most 3.
    assert slowest_of([1, 2, 3, 4], shards=1, searches=10_000, seed=1) == Times(2, 4)


def test_two_shards_wait_for_the_slower_one():
    # The maximum of two dice is at most 4 in 16 of 36 cases and at most 5 in 25 of 36: the median is 5, the p95 6.
    assert slowest_of([1, 2, 3, 4, 5, 6], shards=2, searches=10_000, seed=1) == Times(5, 6)


def test_a_rare_pause_meets_most_searches_of_many_shards():
    # One time in 100 is slow: 1 - 0.99 ** 100 = 63 % of searches over 100 shards meet it, 1 % over one.
    times = [10.0] * 99 + [500.0]
    assert slowest_of(times, shards=1, searches=10_000, seed=1) == Times(10, 10)
    assert slowest_of(times, shards=100, searches=10_000, seed=1) == Times(500, 500)
    # 1 - 0.99 ** 10 = 9.6 %: only the p95 meets it.
    assert slowest_of(times, shards=10, searches=10_000, seed=1) == Times(10, 500)


def test_a_seed_gives_the_same_result_and_another_one_nearly():
    shard = {"shards": 20, "searches": 10_000}
    assert slowest_of(LEGS_MS, seed=3, **shard) == slowest_of(LEGS_MS, seed=3, **shard)
    assert slowest_of(LEGS_MS, seed=4, **shard).p95 == pytest.approx(slowest_of(LEGS_MS, seed=3, **shard).p95, rel=0.1)


@pytest.mark.parametrize("shards", [1, 7, 100])
def test_the_median_is_that_of_the_distribution_of_the_maximum(shards):
    # The maximum is at most t with the share of times up to t, to the power of the shards.
    times = sorted(LEGS_MS)
    exact = next(it for place, it in enumerate(times, 1) if (place / len(times)) ** shards >= 0.5)
    assert slowest_of(LEGS_MS, shards=shards, searches=10_000, seed=0).p50 == pytest.approx(exact, rel=0.05)


def test_the_times_of_a_larger_shard_grow_by_the_measured_slope():
    # 5,000,000 chunks are 4,900,000 more than in the sample: 4.9 * 13.0 = 63.7 ms.
    assert shard_times(5_000_000, "halfvec")[0] == pytest.approx(LEGS_MS[0] + 63.7)
    assert shard_times(1_000, "halfvec") == LEGS_MS
    assert shard_times(1_000, "binary")[0] == pytest.approx(LEGS_MS[0] + VALUES["hnsw_binary_ms"])


def test_a_million_chunks_by_hand():
    plan = capacity_plan(chunks=10**6, qps=10)
    assert (plan.database_machines, plan.shards, plan.web_machines, plan.scan, plan.gpus) == (1, 1, 1, "halfvec", 0)
    # Stored: (4535 + 3923 + 707 + 984 + 1171) bytes a chunk, half as much again for work.
    assert plan.disk_bytes == 1.5 * 11_320 * 10**6
    # In memory: the two indexes of searches, and 0.3 of the rest.
    assert plan.resident_bytes == pytest.approx((1171 + 707 + 0.3 * (4535 + 3923 + 984)) * 10**6, abs=1)
    assert plan.read_model_bytes == (480 + 408) * 10**6
    # 10^6 * 178.7 ms on 16 cores.
    assert plan.embed_hours == pytest.approx(10**6 * 0.1787 / 16 / 3600)
    # 485 s on two cores are 970 core seconds.
    assert plan.index_hours == pytest.approx(970 / 16 / 3600)
    assert plan.changes == ()


def test_a_billion_chunks_change_everything():
    plan = capacity_plan(chunks=10**9, qps=10)
    assert plan.shards == 200
    assert plan.read_model_bytes == 0
    # 10^9 chunks at 1,800 a second are 6.4 days of one GPU.
    assert plan.gpus == 7
    said = " ".join(plan.changes)
    assert all(it in said for it in ("distribute --shards 200", "binary", "CORECUBE_BM25=no", "GPUs", "Partition"))


def test_more_searches_need_more_machines_and_more_memory_fewer():
    plans = [capacity_plan(chunks=10**8, qps=qps) for qps in (1, 10, 100, 1000)]
    machines = [it.database_machines for it in plans]
    assert machines == sorted(machines)
    assert machines[-1] > 10 * machines[0]
    # Where processor time decides, no memory is saved by a scan that takes longer.
    assert (plans[0].scan, plans[-1].scan) == ("binary", "halfvec")
    large = capacity_plan(chunks=10**8, qps=1, machine=Machine(memory_gib=1024))
    assert large.database_machines < machines[0]


def test_every_number_says_where_it_comes_from():
    assert all(it.source and it.unit for it in FIGURES)
    assert {it.name for it in FIGURES if not it.is_measured} == {
        *("shard_chunks", "resident_share", "memory_share", "busy_share", "disk_factor"),
        "partition_core_ms",
    }


def printed(*arguments):
    out = StringIO()
    call_command("plan", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_prints_the_plan():
    text = printed("--chunks", "1e8", "--qps", "20", "--memory", "256")
    assert text.startswith("100,000,000 chunks, 20 searches a second")
    assert "each of 256 GiB" in text
    assert "distribute --shards 20" in text
    assert "Assumed: shard_chunks 5,000,000" in text


def test_the_command_prints_json_with_the_numbers():
    plan = json.loads(printed("--chunks", "1000000", "--json"))
    assert (plan["chunks"], plan["qps"], plan["shards"]) == (10**6, 10, 1)
    assert {it["name"]: it["value"] for it in plan["figures"]} == VALUES


@pytest.mark.parametrize("arguments", [["--chunks", "0"], ["--chunks", "many"], ["--chunks", "9", "--qps", "-1"]])
def test_the_command_refuses_numbers_that_make_no_sense(arguments):
    with pytest.raises(CommandError, match="must be a whole number from"):
        printed(*arguments)
