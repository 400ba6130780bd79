"""Fingerprints of texts."""

import math
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.text.fingerprints import close_pairs, hamming_limit, jaccard, shingles, simhash, words_of

WORDS = [f"word{number}" for number in range(400)]
TEXT = " ".join(WORDS)


def bits_apart(one, other):
    return ((simhash(one) ^ simhash(other)) & (2**64 - 1)).bit_count()


def test_case_punctuation_and_spacing_do_not_count():
    text = "Drain the queue, then roll back the release. Tell the captain!"
    assert simhash(text) == simhash("drain the queue then\nroll back the RELEASE: tell the captain")


def test_a_number_its_sign_and_its_measure_count():
    assert words_of("Keep at -18 °C, 5 % less: C++ 1.5") == [
        "Keep", "at", "-18", "°", "C", "5", "%", "less", "C++", "1.5",
    ]  # fmt: skip
    assert simhash("keep it at -18 degrees") != simhash("keep it at 18 degrees")


def test_scripts_without_spaces_are_read_by_the_character():
    assert words_of("清空队列 now") == ["清", "空", "队", "列", "now"]


def test_a_few_words_of_many_move_few_bits_and_another_text_about_half():
    assert 0 < bits_apart(TEXT, TEXT.replace("word20", "changed")) <= 16
    assert 18 <= bits_apart(TEXT, " ".join(f"other{number}" for number in range(400))) <= 46


def test_short_texts_are_equal_or_far():
    assert simhash("No known issues.") == simhash("no known issues")
    assert bits_apart("No known issues.", "No known issue.") > 12


def test_a_text_without_words_has_none():
    assert simhash("") == simhash("--- ... ***") == 0


def test_it_is_the_same_in_every_process():
    code = f"from retrieval.text.fingerprints import simhash; print(simhash({TEXT!r}))"
    found = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert found == {f"{simhash(TEXT)}\n"}


@given(st.text(max_size=300))
def test_it_fits_a_signed_column(text):
    assert -(2**63) <= simhash(text) < 2**63


def test_jaccard_is_what_both_have_of_what_either_has():
    # "a b c", "b c d" and "b c d", "c d e": one of three.
    assert jaccard(shingles("abcd"), shingles("bcde")) == pytest.approx(1 / 3)
    assert jaccard(shingles("ab"), shingles("ab")) == 1
    assert len(shingles("abcabcabc")) == 3


def test_the_limit_follows_from_the_similarity():
    # J = 0.9: c = 1.8 / 1.9, acos(c) / pi = 0.1037; 64 x 0.1037 + 2.5 sqrt(64 x 0.1037 x 0.8963) = 6.63 + 6.10.
    share = math.acos(1.8 / 1.9) / math.pi
    assert 64 * share + 2.5 * math.sqrt(64 * share * (1 - share)) == pytest.approx(12.73, abs=0.02)
    assert hamming_limit(0.9) == 12
    assert hamming_limit(1.0) == 0


def test_nearly_all_pairs_above_the_similarity_are_within_the_limit():
    rng = np.random.default_rng(5)
    missed = 0
    for _ in range(100):
        changed = list(WORDS)
        for place in rng.choice(400, size=6, replace=False):
            changed[place] = f"changed{place}"
        assert jaccard(shingles(WORDS), shingles(changed)) >= 0.9
        missed += bits_apart(TEXT, " ".join(changed)) > hamming_limit(0.9)
    assert missed <= 3


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=12), st.integers(0, 40))
def test_close_pairs_are_those_that_counting_finds(fingerprints, limit):
    expected = [
        (one, other)
        for one in range(len(fingerprints))
        for other in range(one + 1, len(fingerprints))
        if fingerprints[one] and fingerprints[other]
        if ((fingerprints[one] ^ fingerprints[other]) & (2**64 - 1)).bit_count() <= limit
    ]
    assert close_pairs(fingerprints, limit, lambda _: 0) == expected
    odd = close_pairs(fingerprints, limit, lambda place: place % 2)
    assert odd == [(one, other) for one, other in expected if one % 2 == other % 2]


def test_a_chunk_takes_a_fraction_of_a_millisecond():
    simhash(TEXT)
    started = time.process_time()
    for _ in range(20):
        simhash(TEXT)
    # Measured 0.2 ms; the rest is for slow machines.
    assert (time.process_time() - started) / 20 < 0.003
