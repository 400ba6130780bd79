"""Documents, chunks, embeddings, syncs, searches and their configuration."""

from retrieval.models.answering import LanguageModel, RoutingRule, Usage
from retrieval.models.conversation import Conversation, Memory, Message, StartingPrompt
from retrieval.models.document import Chunk, Document, OutboxEntry, TermFrequency
from retrieval.models.embedding import Embedding, EmbeddingIndex, SentenceEmbedding, SparseEmbedding, TokenEmbedding
from retrieval.models.evaluation_run import EvaluationRun, RunCase
from retrieval.models.experiment import Experiment
from retrieval.models.gate import Gate, Schedule
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
from retrieval.models.impression import Impression
from retrieval.models.judgment import Case, Judgment, QuestionSet
from retrieval.models.preset import Calibration, PresetVersion, StoredSectionSet
from retrieval.models.search import IdempotentRequest, QueuedSearch, SearchRecord
from retrieval.models.sweep import Sweep, Trial
from retrieval.models.sync import Sync, SyncItem, SyncProblem, Worker
