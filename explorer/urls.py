"""Addresses of the pages."""

from django.urls import path

from explorer.views import documents, jobs, presets, search, sources

app_name = "explorer"
urlpatterns = [
    path("", search.search, name="search"),
    # documents/
    path("documents/<uuid:document_id>/", documents.document, name="document"),
    # presets/
    path("presets/", presets.presets, name="presets"),
    path("presets/<slug:name>/", presets.preset, name="preset"),
    path("presets/<slug:name>/discard/", presets.discard_draft, name="discard_draft"),
    path("presets/<slug:name>/promote/<int:number>/", presets.promote, name="promote"),
    # jobs/
    path("jobs/", jobs.jobs, name="jobs"),
    path("jobs/<uuid:job_id>/cancel/", jobs.cancel, name="cancel_job"),
    path("jobs/<uuid:job_id>/retry/", jobs.retry, name="retry_job"),
    # sources/
    path("sources/", sources.sources, name="sources"),
    path("sources/new/", sources.new_source, name="new_source"),
    path("sources/<slug:slug>/", sources.source, name="source"),
    path("sources/<slug:slug>/progress/", sources.source_progress, name="source_progress"),
    path("sources/<slug:slug>/quality/", sources.source_quality, name="source_quality"),
    path("sources/<slug:slug>/sync/", sources.sync_source, name="sync_source"),
    path("sources/<slug:slug>/upload/", sources.upload, name="upload"),
]
