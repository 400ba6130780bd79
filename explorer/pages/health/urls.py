"""URLs of the overview and the health page."""

from django.urls import path

from explorer.pages.health import views

urlpatterns = [
    path("overview/", views.overview, name="overview"),
    path("overview/jobs/", views.overview_jobs, name="overview_jobs"),
    path("overview/guide/dismiss/", views.dismiss_guide, name="dismiss_guide"),
    path("health/", views.health, name="health"),
]
