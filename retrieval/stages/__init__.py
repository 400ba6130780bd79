"""The stages, one small file each. A preset is a tuple of them."""

from retrieval.stages.access import CheckAccess
from retrieval.stages.analyze import Analyze
from retrieval.stages.answerability import JudgeAnswerability
from retrieval.stages.assemble import Assemble
from retrieval.stages.balance_sources import BalanceSources
from retrieval.stages.blend import Blend
from retrieval.stages.bm25 import Bm25
from retrieval.stages.complete import Complete, CompleteInTime
from retrieval.stages.cut_with_quota import CutWithQuota
from retrieval.stages.dedupe import Dedupe
from retrieval.stages.dense import Dense
from retrieval.stages.diversify import Diversify
from retrieval.stages.embed import Embed
from retrieval.stages.expand import Expand
from retrieval.stages.floor import Floor
from retrieval.stages.freshness import Freshness
from retrieval.stages.fulltext import Fulltext
from retrieval.stages.fuse import Fuse
from retrieval.stages.fuse_weighted import FuseWeighted
from retrieval.stages.judge_relevance import JudgeRelevance
from retrieval.stages.near_duplicates import NearDuplicates
from retrieval.stages.neighbours import Neighbours
from retrieval.stages.pack import Pack
from retrieval.stages.pack_context import PackContext
from retrieval.stages.prefer_sources import PreferSources
from retrieval.stages.protect import Protect
from retrieval.stages.quality import Quality
from retrieval.stages.read_names import ReadNames
from retrieval.stages.recover import Recover
from retrieval.stages.recover_sources import RecoverSources
from retrieval.stages.rerank import Rerank
from retrieval.stages.rerank_section import RerankSection
from retrieval.stages.retry_chunks import RetryChunks
from retrieval.stages.route import Route
from retrieval.stages.route_structure import RouteStructure
from retrieval.stages.section_floors import SectionFloors
from retrieval.stages.set_up_section import SetUpSection
from retrieval.stages.signals import RankSignals
from retrieval.stages.sparse import Sparse
from retrieval.stages.ties import BreakTies
from retrieval.stages.tighten_pool import TightenPool
from retrieval.stages.validate_scope import ValidateScope

__all__ = [
    "Analyze",
    "Assemble",
    "BalanceSources",
    "Blend",
    "Bm25",
    "BreakTies",
    "CheckAccess",
    "Complete",
    "CompleteInTime",
    "CutWithQuota",
    "Dedupe",
    "Dense",
    "Diversify",
    "Embed",
    "Expand",
    "Floor",
    "Freshness",
    "Fulltext",
    "Fuse",
    "FuseWeighted",
    "JudgeAnswerability",
    "JudgeRelevance",
    "NearDuplicates",
    "Neighbours",
    "Pack",
    "PackContext",
    "PreferSources",
    "Protect",
    "Quality",
    "RankSignals",
    "ReadNames",
    "Recover",
    "RecoverSources",
    "Rerank",
    "RerankSection",
    "RetryChunks",
    "Route",
    "RouteStructure",
    "SectionFloors",
    "SetUpSection",
    "Sparse",
    "TightenPool",
    "ValidateScope",
]
