"""Addresses of the Explorer."""

from django.urls import path

from explorer.pages.explorer import queued, views

urlpatterns = [
    path("", views.search, name="search"),
    path("answer/<uuid:record_id>/", views.answer, name="answer"),
    path("queued/", queued.ask, name="queue_search"),
    path("queued/<uuid:search_id>/", queued.queued, name="queued_search"),
]
