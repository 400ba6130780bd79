"""Addresses of one question to several presets."""

from django.urls import path

from explorer.pages.side_by_side import views

urlpatterns = [path("side-by-side/", views.side_by_side, name="side_by_side")]
