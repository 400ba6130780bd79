"""The stages, one small file each. A preset is a tuple of them."""

from retrieval.stages.access import CheckAccess
from retrieval.stages.analyze import Analyze
from retrieval.stages.answerability import JudgeAnswerability
from retrieval.stages.assemble import Assemble
from retrieval.stages.blend import Blend
from retrieval.stages.bm25 import Bm25
from retrieval.stages.complete import Complete
from retrieval.stages.dedupe import Dedupe
from retrieval.stages.dense import Dense
from retrieval.stages.diversify import Diversify
from retrieval.stages.embed import Embed
from retrieval.stages.expand import Expand
from retrieval.stages.floor import Floor
from retrieval.stages.freshness import Freshness
from retrieval.stages.fulltext import Fulltext
from retrieval.stages.fuse import Fuse
from retrieval.stages.near_duplicates import NearDuplicates
from retrieval.stages.pack import Pack
from retrieval.stages.quality import Quality
from retrieval.stages.read_names import ReadNames
from retrieval.stages.rerank import Rerank
from retrieval.stages.route import Route
from retrieval.stages.signals import RankSignals
from retrieval.stages.sparse import Sparse
from retrieval.stages.ties import BreakTies

__all__ = [
    "Analyze",
    "Assemble",
    "Blend",
    "Bm25",
    "BreakTies",
    "CheckAccess",
    "Complete",
    "Dedupe",
    "Dense",
    "Diversify",
    "Embed",
    "Expand",
    "Floor",
    "Freshness",
    "Fulltext",
    "Fuse",
    "JudgeAnswerability",
    "NearDuplicates",
    "Pack",
    "Quality",
    "RankSignals",
    "ReadNames",
    "Rerank",
    "Route",
    "Sparse",
]
