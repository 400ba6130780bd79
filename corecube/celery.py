"""The Celery application: `celery -A corecube worker`. Redis when REDIS_URL is set, else files under `var/queue`."""

import os
from contextlib import ExitStack
from typing import Final

from celery import Celery
from celery.signals import task_postrun, task_prerun, worker_init

from corecube import tracing
from corecube.logs import origin

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "corecube.settings")
# Celery would run Django's system checks and drop their results. They load every page and API, which no worker needs.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

app = Celery("corecube")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_init.connect
def check_database(**_: object) -> None:
    """Log problems with the database; exit for a permanent one."""
    from corecube.health import check_database  # noqa: PLC0415 -- Django is set up now

    check_database()


_running: Final = ExitStack()


@task_prerun.connect
def mark_lines(task_id: str, task: object, **_: object) -> None:
    """Write the task's id to the lines of the log that it causes, and trace it."""
    origin.set({"task_id": task_id})
    _running.enter_context(tracing.span(getattr(task, "name", ""), celery__task_id=task_id))


@task_postrun.connect
def unmark_lines(**_: object) -> None:
    """Write no task's id any more, and end its span."""
    origin.set({})
    _running.close()
