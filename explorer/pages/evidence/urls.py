"""Addresses of evidence and section sets."""

from django.urls import path

from explorer.pages.evidence import section_sets, views

urlpatterns = [
    path("evidence/", views.evidence, name="evidence"),
    path("section-sets/", section_sets.sets, name="section_sets"),
    path("section-sets/<slug:name>/", section_sets.one_set, name="section_set"),
    path("section-sets/<slug:name>/copy/", section_sets.copy_set, name="copy_section_set"),
    path("section-sets/<slug:name>/reset/", section_sets.reset_set, name="reset_section_set"),
    path("section-sets/<slug:name>/delete/", section_sets.delete_set, name="delete_section_set"),
    path("section-sets/<slug:name>/new-section/", section_sets.new_section, name="new_section"),
    path("section-sets/<slug:name>/sections/<slug:section>/", section_sets.edit_section, name="edit_section"),
    path(
        "section-sets/<slug:name>/sections/<slug:section>/change/", section_sets.change_section, name="change_section"
    ),
]
