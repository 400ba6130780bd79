"""Tasks of Celery workers. Celery finds them through this package; ingestion's tasks are in `retrieval.ingest`."""

from retrieval.ingest import index_tasks, tasks
from retrieval.ingest.enrich import tasks as enrich_tasks
from retrieval.tasks import backups, evaluation_runs, queued_searches, worker

__all__ = ["backups", "enrich_tasks", "evaluation_runs", "index_tasks", "queued_searches", "tasks", "worker"]
