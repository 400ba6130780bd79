"""The Celery application: `celery -A corecube worker`. Redis when REDIS_URL is set, else files under `var/queue`."""

import os

from celery import Celery
from celery.signals import worker_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "corecube.settings")

app = Celery("corecube")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_init.connect
def look_at_database(**_: object) -> None:
    """Say what keeps a starting worker from working; end it where that cannot come right."""
    from corecube.startup import look_at_database  # noqa: PLC0415 -- Django is set up by now

    look_at_database()
