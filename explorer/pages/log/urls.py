"""Addresses of the log."""

from django.urls import path

from explorer.pages.log import views

urlpatterns = [path("log/", views.log, name="log"), path("log/<uuid:record_id>/", views.record, name="record")]
