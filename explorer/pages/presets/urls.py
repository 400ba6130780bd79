"""URLs of presets."""

from django.urls import path

from explorer.pages.presets import views

urlpatterns = [
    path("presets/", views.presets, name="presets"),
    path("presets/<slug:name>/", views.preset, name="preset"),
    path("presets/<slug:name>/discard/", views.discard_draft, name="discard_draft"),
    path("presets/<slug:name>/promote/<int:number>/", views.promote, name="promote"),
]
