"""Addresses of judgments."""

from django.urls import path

from explorer.pages.evaluation import judge, views

urlpatterns = [
    path("judge/", judge.judge_hit, name="judge"),
    path("judge/case/", judge.save_as_case, name="save_as_case"),
    path("judgments/", views.question_sets, name="judgments"),
    path("judgments/cases/<uuid:case_id>/", views.change_case, name="change_case"),
    path("judgments/<slug:slug>/", views.question_set, name="question_set"),
    path("judgments/<slug:slug>/delete/", views.remove_set, name="delete_question_set"),
    path("judgments/<slug:slug>/measures/", views.measures, name="measure_set"),
    path("judgments/<slug:slug>/import/", views.import_judgments, name="import_judgments"),
    path("judgments/<slug:slug>/export.<str:kind>", views.export, name="export_judgments"),
]
