"""Writing and reading vector files: nothing but what was committed, and of that the nearest."""

import uuid

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from retrieval.errors import VectorFilesUnavailableError
from retrieval.index.vectors import reader, writer
from retrieval.index.vectors.files import STATE, State, quantized
from retrieval.index.vectors.reader import Reader
from tests.profiles import examples
from tests.retrieval.index.vectors.conftest import ABOUT, Shelf, chunk_id, units

pytestmark = pytest.mark.pure
_FOR_EACH = settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def test_a_vector_becomes_int8_by_its_greatest_component():
    (levels,), (scale,) = quantized(np.array([[0.5, -0.25, 0.127]], np.float32))
    # 0.5 / 127 is a step: -0.25 is 63.5 of them, 0.127 is 32.258.
    assert levels.tolist() == [127, -64, 32]
    assert scale == pytest.approx(0.5 / 127)
    assert quantized(np.zeros((1, 3), np.float32))[0].tolist() == [[0, 0, 0]]


@_FOR_EACH
@given(
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=4),
    scope=st.sets(st.integers(0, 5)),
    count=st.integers(1, 50),
    dim=st.integers(1, 70),
    seed=st.integers(0, 1000),
)
def test_the_nearest_are_those_of_all_in_scope_by_their_int8_product(tmp_path_factory, sizes, scope, count, dim, seed):
    shelf = Shelf(tmp_path_factory.mktemp("vectors")).build({**ABOUT, "dim": dim})
    vectors, query = units(sum(sizes), dim=dim, seed=seed), units(1, dim=dim, seed=seed + 1)
    output, first, scores = shelf.writer(dim), 0, {}
    levels, scales = quantized(vectors)
    asked, _ = quantized(query)
    products = (levels.astype(np.int32) @ asked[0].astype(np.int32)) * scales
    for connection, size in enumerate(sizes):
        numbers = range(first, first + size)
        output.add(connection, [chunk_id(it, it % 3) for it in numbers], vectors[first : first + size])
        if connection in scope:
            scores |= {(it, it % 3): products[it] for it in numbers}
        first += size
    output.commit(2)
    found = shelf.nearest(query[0], scope, count)
    assert len(found) == min(count, len(scores))
    assert len(set(found)) == len(found)
    best = sorted(scores.values(), reverse=True)[: len(found)]
    assert sorted((scores[it] for it in found), reverse=True) == pytest.approx(best)


def test_the_hundred_nearest_are_among_two_hundred_candidates(tmp_path):
    """Clustered, as texts are: the best hundred of a query are closer to each other than random vectors."""
    dim, random = 384, np.random.default_rng(5)
    vectors = 0.6 * units(300, dim=dim)[random.integers(0, 300, 20_000)] + 0.8 * units(20_000, dim=dim, seed=3)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    shelf = Shelf(tmp_path).build({**ABOUT, "dim": dim})
    output = shelf.writer(dim)
    output.add(1, [chunk_id(it) for it in range(len(vectors))], vectors)
    output.commit(2)
    for place in range(0, 20_000, 1_000):
        query = vectors[place] + 0.3 * units(1, dim=dim, seed=place)[0]
        query /= np.linalg.norm(query)
        exact = set(np.argsort(-(vectors @ query))[:100].tolist())
        assert exact <= {number for number, _ in shelf.nearest(query, (1,), 200)}


_CHANGES = st.lists(
    st.tuples(st.integers(1, 6), st.integers(1, 3), st.integers(0, 5)),  # document, connection, chunks
    min_size=1,
    max_size=4,
    unique_by=lambda it: it[0],
)
_ENDS = st.sampled_from(["commit", "killed", "killed before the state is replaced"])


@_FOR_EACH
@given(passes=st.lists(st.tuples(_CHANGES, _ENDS), min_size=1, max_size=12))
def test_after_any_changes_exactly_what_was_committed_is_held(tmp_path_factory, passes):
    """Documents come, change, move to another connection and go; writers are killed; files are compacted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "_FEW", 2)
        shelf, known = Shelf(tmp_path_factory.mktemp("vectors")).build(), {}
        for position, (changes, end) in enumerate(passes, start=2):
            output, after = shelf.writer(), dict(known)
            output.remove([uuid.UUID(int=document) for document, _, _ in changes])
            for document, connection, chunks in changes:
                after[document] = (connection, chunks)
                if chunks:
                    ids = [chunk_id(document, place) for place in range(chunks)]
                    output.add(connection, ids, units(chunks, seed=document))
            if end == "commit":
                output.commit(position)
                known = after
            elif end != "killed":
                with pytest.MonkeyPatch.context() as breaks:
                    breaks.setattr(State, "write", lambda *_: 1 / 0)
                    with pytest.raises(ZeroDivisionError):
                        output.commit(position)
            held = {
                connection: [
                    (it, place)
                    for it, (of, chunks) in sorted(known.items())
                    if of == connection
                    for place in range(chunks)
                ]
                for connection in {of for of, chunks in known.values() if chunks}
            }
            assert shelf.held() == held == Shelf(shelf.folder.path).held()


def test_what_is_no_longer_valid_takes_no_more_than_a_fifth(shelf):
    shelf.build()
    shelf.put(1, units(300))
    for seed in range(20):
        shelf.put(2, units(50, seed=seed))
        (file,) = State.read(shelf.folder.current).files.values()
        assert file.records - file.dead in {300, 350}
        assert file.dead <= 100
    assert len(list(shelf.folder.current.iterdir())) <= 4
    shelf.put(1, units(0))
    shelf.put(2, units(0))
    assert sorted(it.name for it in shelf.folder.current.iterdir()) == [STATE, "about.json"]


def test_a_search_that_has_begun_keeps_what_was_there(shelf, monkeypatch):
    monkeypatch.setattr(reader, "_MAPPED_BYTES", 0)
    monkeypatch.setattr(writer, "_FEW", 0)
    shelf.build()
    shelf.put(1, units(5))
    view = shelf.reader.view()
    view.nearest(units(1)[0], [1], 10)
    shelf.put(1, units(3, seed=1))
    shelf.build()
    shelf.put(2, units(2))
    assert shelf.ids(view.nearest(units(1)[0], [1], 10)) == [(1, place) for place in range(5)]
    assert shelf.held() == {1: [(2, 0), (2, 1)]}


def test_a_view_whose_files_went_before_it_was_searched_is_unavailable(shelf):
    shelf.build()
    shelf.put(1, units(5))
    view = shelf.reader.view()
    shelf.build()
    with pytest.raises(VectorFilesUnavailableError):
        view.nearest(units(1)[0], [1], 10)


def test_without_files_none_are_to_be_had(shelf):
    with pytest.raises(VectorFilesUnavailableError):
        shelf.reader.view()
    shelf.build()
    assert shelf.nearest(units(1)[0]) == []
    (shelf.folder.path / "CURRENT").unlink()
    with pytest.raises(VectorFilesUnavailableError):
        shelf.reader.view()


@pytest.mark.parametrize("ending", [".vectors", ".dead", STATE])
@pytest.mark.parametrize("harm", ["gone", "cut", "nonsense"])
@pytest.mark.parametrize("mapped", [0, 2**18])
def test_broken_files_are_told(shelf, ending, harm, mapped, monkeypatch):
    monkeypatch.setattr(reader, "_MAPPED_BYTES", mapped)
    shelf.build()
    shelf.put(1, units(50))
    shelf.put(1, units(50))
    (file,) = (it for it in shelf.folder.current.iterdir() if it.name.endswith(ending))
    content = file.read_bytes()
    file.unlink()
    if harm != "gone":
        file.write_bytes(content[: len(content) // 2] if harm == "cut" else b"\xff" * len(content))
    if harm == "nonsense" and ending == ".vectors":
        # Nobody can tell; what they are nearest to is decided by PostgreSQL.
        assert Reader(shelf.folder).view().nearest(units(1)[0], [1], 10)
        return
    with pytest.raises(VectorFilesUnavailableError):
        Reader(shelf.folder).view().nearest(units(1)[0], [1], 10)
    if ending != STATE or harm != "gone":
        with pytest.raises((VectorFilesUnavailableError, OSError, ValueError)):
            shelf.put(1, units(1))


def test_files_of_another_schema_are_none(shelf):
    shelf.build({**ABOUT, "schema": 0})
    with pytest.raises(VectorFilesUnavailableError):
        shelf.reader.view()


def test_small_files_use_no_file_descriptor(shelf):
    shelf.build()
    output = shelf.writer()
    for connection in range(50):
        output.add(connection, [chunk_id(connection)], units(1))
    output.commit(2)
    view = shelf.reader.view()
    assert len(shelf.ids(view.nearest(units(1)[0], range(50), 100))) == view.count(range(50)) == 50
    assert all(it.records.base is None for it in view.files.values())
