"""Addresses of comparing two searches."""

from django.urls import path

from explorer.pages.compare import views

urlpatterns = [path("compare/", views.compare, name="compare")]
