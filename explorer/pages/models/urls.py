"""URLs of embedding models, language models, usage and routes."""

from django.urls import path

from explorer.pages.models import language_models, routes, usage, views

urlpatterns = [
    path("models/", views.models, name="models"),
    path("models/indexes/", views.start_index, name="start_index"),
    path("models/indexes/<int:number>/build/", views.build_index, name="build_index"),
    path("models/indexes/<int:number>/switch/", views.switch_index, name="switch_index"),
    path("models/indexes/<int:number>/drop/", views.drop_index, name="drop_index"),
    path("language-models/", language_models.language_models, name="language_models"),
    path("language-models/new/", language_models.new_language_model, name="new_language_model"),
    path("language-models/usage/", usage.usage, name="usage"),
    path("language-models/routing/", language_models.set_rule, name="set_rule"),
    path("language-models/routing/<int:number>/remove/", language_models.remove_rule, name="remove_rule"),
    path("language-models/<slug:slug>/", language_models.edit_language_model, name="edit_language_model"),
    path("language-models/<slug:slug>/delete/", language_models.delete_language_model, name="delete_language_model"),
    path("routes/", routes.routes, name="routes"),
    path("routes/<int:number>/delete/", routes.remove_example, name="remove_route_example"),
]
