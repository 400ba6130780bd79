"""URLs of connections and their jobs."""

from django.urls import path, re_path

from explorer.pages.connections import edit, jobs, views

urlpatterns = [
    path("jobs/", jobs.jobs, name="jobs"),
    path("jobs/<uuid:job_id>/", jobs.job, name="job"),
    path("jobs/<uuid:job_id>/cancel/", jobs.cancel, name="cancel_job"),
    path("jobs/<uuid:job_id>/retry/", jobs.retry, name="retry_job"),
    path("connections/", views.connections, name="connections"),
    path("connections/new/", edit.new_connection, name="new_connection"),
    path("connections/new/access/", edit.connection_access, name="new_connection_access"),
    path("connections/new/<slug:kind>/", edit.new_connection_of, name="new_connection_of"),
    path("connections/<slug:slug>/", views.connection, name="connection"),
    path("connections/<slug:slug>/progress/", views.connection_progress, name="connection_progress"),
    path("connections/<slug:slug>/quality/", views.connection_quality, name="connection_quality"),
    path("connections/<slug:slug>/sync/", views.sync_connection, name="sync_connection"),
    path("connections/<slug:slug>/edit/", edit.edit_connection, name="edit_connection"),
    path("connections/<slug:slug>/access/", edit.connection_access, name="connection_access"),
    path("connections/<slug:slug>/switch/", views.switch, name="switch_connection"),
    path("connections/<slug:slug>/delete/", edit.remove_connection, name="delete_connection"),
    path("connections/<slug:slug>/upload/", views.upload, name="upload"),
    re_path(r"^sources/(?P<rest>[-\w/]*)$", views.moved),
]
