"""Documents, chunks, their embeddings, and the record of what was ingested and searched."""

from retrieval.models.answering import LanguageModel, RoutingRule, Usage
from retrieval.models.calibration import Calibration
from retrieval.models.conversation import Conversation, Message
from retrieval.models.document import Chunk, Document, OutboxEntry, TermFrequency
from retrieval.models.embedding import Embedding, EmbeddingIndex
from retrieval.models.encodings import SparseEmbedding, TokenEmbedding
from retrieval.models.graph import (
    ChunkLink,
    ChunkMentions,
    CommonMention,
    DocumentAccess,
    DocumentName,
    MentionCount,
    ReadModel,
    RouteExample,
)
from retrieval.models.idempotency import IdempotentRequest
from retrieval.models.judgment import Case, Judgment, QuestionSet
from retrieval.models.memory import Memory
from retrieval.models.preset import PresetVersion
from retrieval.models.queued_search import QueuedSearch
from retrieval.models.search import SearchRecord
from retrieval.models.section_set import StoredSectionSet
from retrieval.models.sync import Sync, SyncItem, SyncProblem
from retrieval.models.worker import Worker

__all__ = [
    "Calibration",
    "Case",
    "Chunk",
    "ChunkLink",
    "ChunkMentions",
    "CommonMention",
    "Conversation",
    "Document",
    "DocumentAccess",
    "DocumentName",
    "Embedding",
    "EmbeddingIndex",
    "IdempotentRequest",
    "Judgment",
    "LanguageModel",
    "Memory",
    "MentionCount",
    "Message",
    "OutboxEntry",
    "PresetVersion",
    "QuestionSet",
    "QueuedSearch",
    "ReadModel",
    "RouteExample",
    "RoutingRule",
    "SearchRecord",
    "SparseEmbedding",
    "StoredSectionSet",
    "Sync",
    "SyncItem",
    "SyncProblem",
    "TermFrequency",
    "TokenEmbedding",
    "Usage",
    "Worker",
]
