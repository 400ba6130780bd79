"""The stages, one small file each. A preset is a tuple of them."""

from retrieval.stages.access import CheckAccess
from retrieval.stages.analyze import Analyze
from retrieval.stages.answerability import JudgeAnswerability
from retrieval.stages.assemble import Assemble
from retrieval.stages.blend import Blend
from retrieval.stages.complete import Complete
from retrieval.stages.dedupe import Dedupe
from retrieval.stages.dense import Dense
from retrieval.stages.embed import Embed
from retrieval.stages.floor import Floor
from retrieval.stages.freshness import Freshness
from retrieval.stages.fulltext import Fulltext
from retrieval.stages.fuse import Fuse
from retrieval.stages.quality import Quality
from retrieval.stages.rerank import Rerank
from retrieval.stages.ties import BreakTies

__all__ = [
    "Analyze",
    "Assemble",
    "Blend",
    "BreakTies",
    "CheckAccess",
    "Complete",
    "Dedupe",
    "Dense",
    "Embed",
    "Floor",
    "Freshness",
    "Fulltext",
    "Fuse",
    "JudgeAnswerability",
    "Quality",
    "Rerank",
]
