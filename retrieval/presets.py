"""The presets: each a tuple of stages over one engine, and a config."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from retrieval.config import PresetConfig
from retrieval.errors import UnknownPresetError
from retrieval.pipeline import Legs, Pipeline
from retrieval.resources import Resources
from retrieval.stages import (
    Analyze,
    Assemble,
    Blend,
    BreakTies,
    CheckAccess,
    Complete,
    Dedupe,
    Dense,
    Embed,
    Floor,
    Freshness,
    Fulltext,
    Fuse,
    JudgeAnswerability,
    Quality,
    Rerank,
)


@dataclass(frozen=True, slots=True)
class Preset:
    """A way of retrieving."""

    name: str
    description: str
    #: What it runs with where no version says otherwise.
    defaults: PresetConfig
    build: Callable[[PresetConfig, Resources], Pipeline]

    def version(self, pipeline: Pipeline, config: PresetConfig) -> str:
        """Return a fingerprint of the stages and of every number: it changes when either does."""
        return hashlib.sha256(f"{pipeline!r} {config}".encode()).hexdigest()[:12]


def build_corecube(config: PresetConfig, resources: Resources) -> Pipeline:
    """Return governed hybrid search: full text and vectors, RRF into a pool, a blend to order it."""
    return Pipeline(
        (
            Analyze(resources.text_search_config),
            Embed(resources.encoder, resources.query_cache),
            Legs(
                (Dense(config.dense, resources.index), Fulltext(config.fulltext)),
                resources.executor,
            ),
            Fuse(config.fusion),
            Complete(config.fulltext, resources.index),
            CheckAccess(),
            Freshness(),
            Quality(config.quality),
            Blend(config.blend),
            Rerank(config.rerank, resources.reranker),
            BreakTies(config.ties),
            Floor(config.floor),
            Dedupe(config.dedupe),
            Assemble(config.assemble, resources.count_tokens),
            JudgeAnswerability(
                config.answerability,
                resources.text_search_config,
                resources.sentence_encoder,
                resources.calibrations.get("corecube"),
            ),
        )
    )


PRESETS: Final = {
    preset.name: preset
    for preset in (
        Preset(
            "corecube",
            "Governed hybrid search: full text and vectors, fused and blended.",
            PresetConfig(),
            build_corecube,
        ),
    )
}
DEFAULT_PRESET: Final = "corecube"


def preset_named(name: str) -> Preset:
    """Return the preset; raise UnknownPresetError, which names those that exist."""
    if name not in PRESETS:
        message = f"There is no preset {name!r}; there are: {', '.join(PRESETS)}."
        raise UnknownPresetError(message)
    return PRESETS[name]
