"""CoreCube: access control, connections and the application's foundation."""

from corecube.celery import app as celery_app

__all__ = ["celery_app"]
