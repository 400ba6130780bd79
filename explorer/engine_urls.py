"""Addresses of the overview, the models and the health."""

from django.urls import path

from explorer.views import health, models, overview

urlpatterns = [
    # overview/
    path("overview/", overview.overview, name="overview"),
    path("overview/jobs/", overview.overview_jobs, name="overview_jobs"),
    path("overview/guide/dismiss/", overview.dismiss_guide, name="dismiss_guide"),
    # models/
    path("models/", models.models, name="models"),
    path("models/indexes/", models.start_index, name="start_index"),
    path("models/indexes/<int:number>/build/", models.build_index, name="build_index"),
    path("models/indexes/<int:number>/switch/", models.switch_index, name="switch_index"),
    path("models/indexes/<int:number>/drop/", models.drop_index, name="drop_index"),
    # health/
    path("health/", health.health, name="health"),
]
