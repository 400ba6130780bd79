"""Signatures against the exact Jaccard similarity of the same shingles."""

import math
import random
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.text.fingerprints import PERMUTATIONS, jaccard, minhash, shingles, similarity

WORDS = [f"word{number}" for number in range(400)]


def mixture(seed, share):
    """Return two texts of 300 words that begin with the same `share` of them."""
    drawn = random.Random(seed)
    one = [drawn.choice(WORDS) for _ in range(300)]
    same = int(300 * share)
    return one, one[:same] + [drawn.choice(WORDS) for _ in range(300 - same)]


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.8, 0.95, 1.0])
def test_the_estimate_agrees_with_the_exact_similarity(share):
    differences = []
    for seed in range(30):
        one, other = mixture(seed, share)
        exact = jaccard(shingles(one), shingles(other))
        differences.append(similarity(minhash(" ".join(one)), minhash(" ".join(other))) - exact)
    spread = math.sqrt(sum(it * it for it in differences) / len(differences))
    # The standard error of 128 permutations is at most 0.045, and the mean of 30 estimates has 0.009.
    assert spread <= 0.06
    assert abs(sum(differences) / len(differences)) <= 0.03


def test_a_text_is_itself_whatever_its_case_and_signs():
    assert minhash("The queue, drained: FOUR minutes!") == minhash("the queue drained four minutes")
    assert similarity(minhash("a b c d"), minhash("a b c d")) == 1.0


def test_a_text_without_words_is_like_none():
    assert minhash(" -- ... ") == b""
    assert similarity(b"", b"") == 0.0
    assert similarity(b"", minhash("one two three")) == 0.0


@given(st.lists(st.sampled_from(WORDS[:20]), min_size=1, max_size=60))
def test_a_signature_has_a_byte_for_each_permutation(words):
    assert len(minhash(" ".join(words))) == PERMUTATIONS


def test_a_long_text_is_read_in_blocks_to_the_same_minima():
    words = [f"w{number}" for number in range(10_000)]
    halves = minhash(" ".join(words)), minhash(" ".join(words[:9_900]))
    assert similarity(*halves) == pytest.approx(0.99, abs=0.05)


def test_another_process_gives_the_same_signature():
    code = "from retrieval.text.fingerprints import minhash; print(minhash('drain the queue first').hex())"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == minhash("drain the queue first").hex()
