"""CoreCube: who may see what, and where documents come from."""

from corecube.celery import app as celery_app

__all__ = ["celery_app"]
