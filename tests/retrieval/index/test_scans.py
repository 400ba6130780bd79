"""Walks over quantised vectors: they find, the whole vectors choose and order, and the scope holds."""

from dataclasses import replace

import numpy as np
import pytest
from django.db import connection as database

from corecube.errors import ConfigError
from retrieval.encoders import load_encoder
from retrieval.index import store
from retrieval.index.scans import MAX_OVERSAMPLE, ScanChoice, dense_statement
from tests.fakes import HashEncoder
from tests.retrieval.index.conftest import rebuild

QUANTISED = ("int8", "binary", "prefix")


class Nested(HashEncoder):
    """A model whose first 16 components and more stand for the whole, if one believes it."""

    min_dim = 16


@pytest.fixture(params=QUANTISED)
def walked(request, index):
    found = replace(index, scan=request.param, scan_dim=32 if request.param == "prefix" else 0, oversample=4.0)
    rebuild(found)
    return found


def search(query, scope, index, *, depth=20, **changes):
    return store.dense_hnsw(
        query, scope=scope, index=replace(index, **changes), depth=depth, ef_search=40, timeout_seconds=5
    )


def exact(query, scope, index, depth=20):
    return store.dense_exact(query, scope=scope, index=index, depth=depth, timeout_seconds=5)


def test_the_ranking_is_by_the_whole_vectors(bob, walked, unit, many):
    for query in unit(21, 5):
        found = search(query, bob, walked)
        cosines = {hit.chunk_id: hit.score for hit in exact(query, bob, walked, depth=5000)}
        assert len(found) == 20
        assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
        assert [hit.score for hit in found] == pytest.approx([cosines[hit.chunk_id] for hit in found], abs=1e-6)


def test_more_candidates_find_more_and_all_of_them_find_everything(bob, walked, unit, many):
    def recall(oversample):
        shares = []
        for query in unit(22, 10):
            found = {hit.chunk_id for hit in search(query, bob, walked, oversample=oversample)}
            shares.append(len(found & {hit.chunk_id for hit in exact(query, bob, walked)}) / 20)
        return np.mean(shares)

    minimum, usual, all_of_them = recall(1.0), recall(8.0), recall(45.0)
    assert minimum < usual <= all_of_them
    assert all_of_them >= 0.95


def test_nothing_out_of_scope_is_found(world, bob, walked, unit, many):
    found = search(unit(23)[0], bob, walked, depth=900)
    with database.cursor() as cursor:
        cursor.execute(
            "SELECT document_id, ordinal FROM retrieval_embedding WHERE connection_id <> %s", [world.runbooks.pk]
        )
        hidden = {(document, ordinal) for document, ordinal in cursor.fetchall()}
    assert len(found) == 900
    assert not hidden & {tuple(hit.chunk_id) for hit in found}


def test_the_bits_of_int8_are_thresholds_apart(index):
    dim = index.dim
    step = 1 / np.sqrt(dim)
    one, other = np.zeros(dim, np.float32), np.zeros(dim, np.float32)
    one[0], other[0] = -1.0 * step, 1.0 * step  # -0.75, -0.25, 0.25 and 0.75 lie between them
    one[1], other[1] = 2.0 * step, 1.6 * step  # 1.75 does
    one[2], other[2] = 0.3 * step, 0.7 * step  # none does
    sql = dense_statement("int8", dim)
    bits = sql.split("<~>")[1].split("LIMIT")[0].strip()
    with database.cursor() as cursor:
        one_bits, other_bits = (bits.replace("%(vector)s", f"%({name})s") for name in ("one", "other"))
        text = {"one": str(one.tolist()), "other": str(other.tolist())}
        cursor.execute(f"SELECT {one_bits} <~> {other_bits}, bit_count({one_bits})", text)
        distance, ones = cursor.fetchone()
    assert distance == 5
    assert ones == 4 * (dim - 3) + 2 + 8 + 5


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (ScanChoice("float1"), "Unknown scan 'float1'"),
        (ScanChoice("prefix", 16), "was not trained so"),
        (ScanChoice("binary", 16), "Only the scan prefix"),
        (ScanChoice("binary", oversample=0.5), "between 1 and 20"),
        (ScanChoice("binary", oversample=MAX_OVERSAMPLE + 1), "between 1 and 20"),
    ],
)
def test_what_cannot_be_is_refused(choice, message):
    with pytest.raises(ConfigError, match=message):
        choice.of(HashEncoder())


@pytest.mark.parametrize("dim", [0, 15, 64, 65])
def test_a_prefix_is_shorter_than_the_vectors_and_no_shorter_than_the_model_allows(dim):
    with pytest.raises(ConfigError, match="16 to 63 dimensions"):
        ScanChoice("prefix", dim).of(Nested())
    assert ScanChoice("prefix", 16).of(Nested()).dim == 16


def test_the_usual_oversampling_grows_with_what_the_scan_leaves_out():
    usual = {scan: ScanChoice(scan).of(HashEncoder()).oversample for scan in ("halfvec", "int8", "binary")}
    assert usual["halfvec"] == 1 < usual["int8"] < usual["binary"]
    assert ScanChoice("binary", oversample=3).of(HashEncoder()).oversample == 3


def test_a_model_of_a_folder_says_by_its_manifest_whether_it_has_prefixes(settings):
    encoder = load_encoder(settings.CORECUBE_MODELS_DIR / "bge-small-en-v1.5")
    with pytest.raises(ConfigError, match="was not trained so"):
        ScanChoice("prefix", 128).of(encoder)
