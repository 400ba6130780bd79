"""Addresses of the overview and the health page."""

from django.urls import path

from explorer.pages.health import overview, views

urlpatterns = [
    path("overview/", overview.overview, name="overview"),
    path("overview/jobs/", overview.overview_jobs, name="overview_jobs"),
    path("overview/guide/dismiss/", overview.dismiss_guide, name="dismiss_guide"),
    path("health/", views.health, name="health"),
]
