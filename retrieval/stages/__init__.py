"""The stages, one small file each. A preset is a tuple of them."""

from retrieval.stages.access import CheckAccess
from retrieval.stages.analyze import Analyze
from retrieval.stages.assemble import Assemble
from retrieval.stages.blend import Blend
from retrieval.stages.complete import Complete
from retrieval.stages.dedupe import Dedupe
from retrieval.stages.dense import Dense
from retrieval.stages.embed import Embed
from retrieval.stages.freshness import Freshness
from retrieval.stages.fulltext import Fulltext
from retrieval.stages.fuse import Fuse

__all__ = [
    "Analyze",
    "Assemble",
    "Blend",
    "CheckAccess",
    "Complete",
    "Dedupe",
    "Dense",
    "Embed",
    "Freshness",
    "Fulltext",
    "Fuse",
]
