"""The Celery application: `celery -A corecube worker`. Redis when REDIS_URL is set, else files under `var/queue`."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "corecube.settings")

app = Celery("corecube")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
