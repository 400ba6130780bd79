"""Addresses of the overview, the models, the language models, the section sets, the routes and the health."""

from django.urls import path

from explorer.views import health, language_models, models, overview, routes, section_edit, section_sets, usage

urlpatterns = [
    # overview/
    path("overview/", overview.overview, name="overview"),
    path("overview/jobs/", overview.overview_jobs, name="overview_jobs"),
    path("overview/guide/dismiss/", overview.dismiss_guide, name="dismiss_guide"),
    # models/
    path("models/", models.models, name="models"),
    path("models/indexes/", models.start_index, name="start_index"),
    path("models/indexes/<int:number>/build/", models.build_index, name="build_index"),
    path("models/indexes/<int:number>/switch/", models.switch_index, name="switch_index"),
    path("models/indexes/<int:number>/drop/", models.drop_index, name="drop_index"),
    # language-models/
    path("language-models/", language_models.language_models, name="language_models"),
    path("language-models/new/", language_models.new_language_model, name="new_language_model"),
    path("language-models/usage/", usage.usage, name="usage"),
    path("language-models/routing/", language_models.set_rule, name="set_rule"),
    path("language-models/routing/<int:number>/remove/", language_models.remove_rule, name="remove_rule"),
    path("language-models/<slug:slug>/", language_models.edit_language_model, name="edit_language_model"),
    path("language-models/<slug:slug>/delete/", language_models.delete_language_model, name="delete_language_model"),
    # section-sets/
    path("section-sets/", section_sets.sets, name="section_sets"),
    path("section-sets/<slug:name>/", section_sets.one_set, name="section_set"),
    path("section-sets/<slug:name>/copy/", section_sets.copy_set, name="copy_section_set"),
    path("section-sets/<slug:name>/reset/", section_sets.reset_set, name="reset_section_set"),
    path("section-sets/<slug:name>/delete/", section_sets.delete_set, name="delete_section_set"),
    path("section-sets/<slug:name>/new-section/", section_edit.new_section, name="new_section"),
    path("section-sets/<slug:name>/sections/<slug:section>/", section_edit.edit_section, name="edit_section"),
    path(
        "section-sets/<slug:name>/sections/<slug:section>/change/", section_edit.change_section, name="change_section"
    ),
    # routes/
    path("routes/", routes.routes, name="routes"),
    path("routes/<int:number>/delete/", routes.remove_example, name="remove_route_example"),
    # health/
    path("health/", health.health, name="health"),
]
