"""How many calls an ingest has at work."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.encoders import admission
from retrieval.encoders.admission import INGEST_SLOTS, Memory, calls_under, ingest_load, ingest_slot, memory


@pytest.mark.parametrize(
    ("pressure", "configured", "calls"),
    [
        (0.0, 16, 16),
        (0.6, 16, 16),
        # A third of the way from 0.6 to 0.9: two thirds of 16 are 10.67.
        (0.7, 16, 10),
        (0.75, 16, 8),
        (0.75, 10, 5),
        # A sixth of 16 is 2.67, of 6 is 1.
        (0.85, 16, 2),
        (0.85, 6, 2),
        (0.9, 16, 2),
        (1.4, 16, 2),
        (0.0, 2, 2),
        (0.0, 1, 2),
        (0.0, 40, 16),
    ],
)
def test_calls_fall_with_memory(pressure, configured, calls):
    assert calls_under(pressure, configured=configured) == calls


@given(st.floats(0, 2), st.floats(0, 2), st.integers(1, 64))
def test_more_pressure_never_means_more_calls(one, other, configured):
    low, high = sorted((one, other))
    assert 2 <= calls_under(high, configured=configured) <= calls_under(low, configured=configured) <= INGEST_SLOTS


def test_pressure_is_the_share_of_the_limit():
    assert Memory(3, 4).pressure == 0.75
    assert Memory(3, 0).pressure == 0.0


def test_what_others_use_under_the_same_limit_counts_too():
    assert (Memory(1, 4, 3).pressure, Memory(2, 4, 1).pressure) == (0.75, 0.5)


def test_a_groups_limit_goes_with_its_own_use(tmp_path, monkeypatch):
    machine, limit, stats = tmp_path / "meminfo", tmp_path / "memory.max", tmp_path / "memory.stat"
    machine.write_text("MemTotal: 8 kB\nMemFree: 1 kB\nMemAvailable: 2 kB\n")
    limit.write_text("max\n")
    stats.write_text("anon 3000\nfile 9000\nshmem 96\ninactive_anon 5\n")
    monkeypatch.setattr(admission, "_MEMINFO", machine)
    monkeypatch.setattr(admission, "_STATM", tmp_path / "none")
    monkeypatch.setattr(admission, "_GROUP_LIMITS", (limit, tmp_path / "none"))
    monkeypatch.setattr(admission, "_GROUP_STATS", (stats, tmp_path / "none"))
    assert memory() == Memory(0, 8192, 6144)
    limit.write_text("4128\n")
    assert memory() == Memory(0, 4128, 3096)
    assert memory().pressure == 0.75


def test_the_figures_of_an_ingest():
    with ingest_slot():
        load = ingest_load(8)
    assert (load.slots, load.held, load.waiting, load.configured) == (INGEST_SLOTS, 1, 0, 8)
    assert load.allowed == calls_under(load.memory.pressure, configured=8)


def test_this_process_uses_some_of_its_memory():
    now = memory()
    assert 10 * 2**20 < now.used < now.limit


def test_all_ingests_of_a_process_share_sixteen_slots():
    inside, over = threading.Semaphore(0), threading.Event()

    def work():
        with ingest_slot():
            inside.release()
            over.wait(10)

    threads = [threading.Thread(target=work) for _ in range(INGEST_SLOTS + 3)]
    for thread in threads:
        thread.start()
    assert all(inside.acquire(timeout=5) for _ in range(INGEST_SLOTS))
    assert not inside.acquire(timeout=0.1)
    over.set()
    for thread in threads:
        thread.join()
    assert all(inside.acquire(timeout=5) for _ in range(3))
