"""The router on the real model: it skips what needs no search, and nothing that does."""

import tomllib
from pathlib import Path

import pytest
from django.conf import settings

from retrieval.presets.helix.route_examples import trained_router
from retrieval.presets.helix.router.routes import shipped_examples
from retrieval.presets.helix.stages.route import RouteConfig

CONFIG = RouteConfig()
CONVERSATIONS = Path(__file__).parent / "conversations.toml"
#: None of these is among the examples.
NEEDS_NO_SEARCH = [
    "What is 4 + 5?",
    "Hello there",
    'Format this JSON {"x": [1, 2]}',
    "Thanks!",
    "how do you say cheese in French",
    "good evening",
    "hi",
    "format the following as a table: a,b,c",
]


@pytest.fixture(scope="module")
def skipped(real_encoder):
    router = trained_router(real_encoder, shipped_examples())

    def skip(text):
        likeness = router.likeness(real_encoder.encode_query(text))
        return likeness.skip(minimum=CONFIG.skip_from, margin=CONFIG.skip_margin)

    return skip


def test_no_question_of_the_company_is_skipped(skipped):
    manifest = tomllib.loads((settings.CORECUBE_SAMPLES_DIR / "company.toml").read_text())
    texts = [question["text"] for question in manifest["question"]]
    texts += [turn for it in tomllib.loads(CONVERSATIONS.read_text())["conversation"] for turn in it["turns"]]
    assert len(texts) > 84
    assert [text for text in texts if skipped(text)] == []


def test_what_needs_no_search_is_skipped(skipped):
    assert [text for text in NEEDS_NO_SEARCH if not skipped(text)] == []
