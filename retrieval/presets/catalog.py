"""The presets: each a tuple of stages over one engine, and a config."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from corecube.errors import ConfigError
from retrieval.engine.config import CorecubeConfig, PresetConfig
from retrieval.engine.pipeline import Legs, Pipeline, Stage
from retrieval.errors import UnknownPresetError
from retrieval.presets.consolidated.config import ConsolidatedConfig
from retrieval.presets.consolidated.pipeline import build_consolidated
from retrieval.presets.contextpack.config import ContextPackConfig
from retrieval.presets.contextpack.stages.judge_relevance import JudgeRelevance
from retrieval.presets.contextpack.stages.neighbours import Neighbours
from retrieval.presets.contextpack.stages.pack_context import PackContext
from retrieval.presets.helix.config import GraphConfig, HelixConfig
from retrieval.presets.helix.stages.diversify import Diversify
from retrieval.presets.helix.stages.expand import Expand
from retrieval.presets.helix.stages.few_pairs import few_pairs
from retrieval.presets.helix.stages.near_duplicates import NearDuplicates
from retrieval.presets.helix.stages.pack import Pack
from retrieval.presets.helix.stages.question_ahead import QuestionAhead
from retrieval.presets.helix.stages.read_names import ReadNames
from retrieval.presets.helix.stages.route import Route
from retrieval.presets.helix.stages.signals import RankSignals
from retrieval.presets.helix.stages.sparse import sparse_leg
from retrieval.stages.access import CheckAccess
from retrieval.stages.analyze import Analyze
from retrieval.stages.answerability import JudgeAnswerability
from retrieval.stages.assemble import Assemble
from retrieval.stages.blend import Blend
from retrieval.stages.bm25 import Bm25
from retrieval.stages.complete import Complete, ReadAhead
from retrieval.stages.dedupe import Dedupe
from retrieval.stages.dense import Dense
from retrieval.stages.embed import Embed
from retrieval.stages.floor import Floor
from retrieval.stages.freshness import Freshness
from retrieval.stages.fulltext import Fulltext
from retrieval.stages.fuse import Fuse
from retrieval.stages.quality import Quality
from retrieval.stages.rerank import Rerank
from retrieval.stages.resources import Resources
from retrieval.stages.ties import BreakTies


@dataclass(frozen=True, slots=True)
class Preset:
    """A way of retrieving."""

    name: str
    description: str
    #: What it runs with where no version says otherwise; `build` takes this type.
    defaults: PresetConfig
    build: Callable[[Any, Resources], Pipeline]
    #: The legs that it has without optional models; each can search alone.
    legs: tuple[str, ...]

    def __post_init__(self) -> None:
        """Raise ConfigError where the shipped numbers are not those that their own type declares as defaults."""
        if self.defaults != type(self.defaults)():
            raise ConfigError(f"The defaults of the preset {self.name} differ from those of its configuration class.")

    def version(self, pipeline: Pipeline, config: PresetConfig) -> str:
        """Return a fingerprint of the stages and of every number: it changes when either does."""
        return hashlib.sha256(f"{pipeline!r} {config}".encode()).hexdigest()[:12]


def build_corecube(config: CorecubeConfig, resources: Resources) -> Pipeline:
    """Return governed hybrid search: full text and vectors, RRF into a pool, a blend to order it."""
    return Pipeline(
        (
            Analyze(resources.text_search_config),
            Embed(resources.encoder, resources.query_cache, calls=resources.calls),
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
            Rerank(config.rerank, resources.timed_reranker),
            BreakTies(config.ties),
            Floor(config.floor),
            Dedupe(config.dedupe),
            Assemble(config.assemble, resources.count_tokens),
            JudgeAnswerability(
                config.answerability,
                resources.text_search_config,
                resources.sentence_encoder,
                resources.calibrations.get("corecube"),
                resources.calls,
            ),
        )
    )


def build_helix(config: HelixConfig, resources: Resources) -> Pipeline:
    """Return CPU-only retrieval: routed, fused, ranked by several signals, diversified, packed outside-in.

    No stage holds a language model, and none asks a service: an embedding model at one is left alone.
    """
    analyze = Analyze(resources.text_search_config)
    complete = Complete(config.fulltext, resources.index, with_vectors=True)
    names, links = _links(config.graph, resources, ReadAhead(complete, resources.executor))
    route = Route(config.route, resources.local_router)
    ahead = next((QuestionAhead(analyze, route, it, resources.executor) for it in names), None)
    return Pipeline(
        (
            Embed(resources.local_encoder, resources.query_cache, ahead, resources.calls),
            analyze,
            route,
            Legs(
                (
                    Dense(config.dense, resources.index),
                    Bm25(config.bm25, resources.bm25, resources.text_search_config, Fulltext(config.fulltext)),
                    *sparse_leg(config.sparse, resources.sparse, resources.calls),
                ),
                resources.executor,
                names,
            ),
            Fuse(config.fusion),
            *links,
            complete,
            CheckAccess(),
            Quality(config.quality),
            RankSignals(config.signals),
            *few_pairs(config.rerank, resources.reranker, resources.calls),
            NearDuplicates(config.near_duplicates),
            Diversify(config.diversify),
            Pack(config.pack, resources.count_tokens),
            JudgeAnswerability(
                config.answerability,
                resources.text_search_config,
                resources.sentence_encoder,
                resources.calibrations.get("helix"),
                resources.calls,
            ),
        )
    )


def build_contextpack(config: ContextPackConfig, resources: Resources) -> Pipeline:
    """Return retrieval for context packs: judged by a language model, with what stands around the best hits."""
    return Pipeline(
        (
            Analyze(resources.text_search_config),
            Embed(resources.encoder, resources.query_cache, calls=resources.calls),
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
            Dedupe(config.dedupe, config.relevance.candidates),
            JudgeRelevance(config.relevance, config.blend, resources.judge, resources.timed_reranker),
            Neighbours(config.neighbours, config.relevance.top, config.quality.least),
            PackContext(config.context, config.relevance.top, resources.answerer_counter, resources.own_counter),
            JudgeAnswerability(
                config.answerability,
                resources.text_search_config,
                resources.sentence_encoder,
                resources.calibrations.get("contextpack"),
                resources.calls,
            ),
        )
    )


def _links(
    config: GraphConfig, resources: Resources, pool: ReadAhead
) -> tuple[tuple[ReadNames, ...], tuple[Stage, ...]]:
    """Return the stage that reads names beside the legs, and the stage that follows links.

    None of them where what is asked of a name would be embedded by a service.
    """
    model = resources.local_encoder
    if model is None:
        return (), ()
    names = ReadNames(config, model, resources.query_cache, resources.calls)
    return (names,), (Expand(config, resources.index, names, pool),)


PRESETS: Final = {
    preset.name: preset
    for preset in (
        Preset(
            "corecube",
            "Governed hybrid search: full text and vectors, fused and blended.",
            CorecubeConfig(),
            build_corecube,
            ("dense", "fulltext"),
        ),
        Preset(
            "helix",
            "Fast search for agents on the CPU alone: routed, ranked by memory type, diversified; no language model.",
            HelixConfig(),
            build_helix,
            ("dense", "bm25"),
        ),
        Preset(
            "consolidated",
            "Evidence for the sections of a report: many-sided, recovered where a source type is missing, on time.",
            ConsolidatedConfig(),
            build_consolidated,
            ("dense", "bm25"),
        ),
        Preset(
            "contextpack",
            "Judged by a language model, and packed with sections and neighbours into a budget of tokens.",
            ContextPackConfig(),
            build_contextpack,
            ("dense", "fulltext"),
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
