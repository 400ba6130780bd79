"""Addresses of the pages."""

from django.urls import path, re_path

from explorer import access_urls, chat_urls, engine_urls
from explorer.views import (
    answer,
    compare,
    connection_edit,
    connections,
    documents,
    evidence,
    jobs,
    judge,
    log,
    presets,
    question_sets,
    queued,
    search,
    side_by_side,
)

app_name = "explorer"
urlpatterns = [
    path("", search.search, name="search"),
    path("answer/<uuid:record_id>/", answer.answer, name="answer"),
    # chat/
    *chat_urls.urlpatterns,
    # queued/
    path("queued/", queued.ask, name="queue_search"),
    path("queued/<uuid:search_id>/", queued.queued, name="queued_search"),
    # compare/
    path("compare/", compare.compare, name="compare"),
    # side-by-side/
    path("side-by-side/", side_by_side.side_by_side, name="side_by_side"),
    # documents/
    path("documents/", documents.documents, name="documents"),
    path("documents/<uuid:document_id>/", documents.document, name="document"),
    # evidence/
    path("evidence/", evidence.evidence, name="evidence"),
    # judge/
    path("judge/", judge.judge_hit, name="judge"),
    path("judge/case/", judge.save_as_case, name="save_as_case"),
    # judgments/
    path("judgments/", question_sets.question_sets, name="judgments"),
    path("judgments/cases/<uuid:case_id>/", question_sets.change_case, name="change_case"),
    path("judgments/<slug:slug>/", question_sets.question_set, name="question_set"),
    path("judgments/<slug:slug>/delete/", question_sets.remove_set, name="delete_question_set"),
    path("judgments/<slug:slug>/measures/", question_sets.measures, name="measure_set"),
    path("judgments/<slug:slug>/import/", question_sets.import_judgments, name="import_judgments"),
    path("judgments/<slug:slug>/export.<str:kind>", question_sets.export, name="export_judgments"),
    # log/
    path("log/", log.log, name="log"),
    path("log/<uuid:record_id>/", log.record, name="record"),
    # presets/
    path("presets/", presets.presets, name="presets"),
    path("presets/<slug:name>/", presets.preset, name="preset"),
    path("presets/<slug:name>/discard/", presets.discard_draft, name="discard_draft"),
    path("presets/<slug:name>/promote/<int:number>/", presets.promote, name="promote"),
    # jobs/
    path("jobs/", jobs.jobs, name="jobs"),
    path("jobs/<uuid:job_id>/", jobs.job, name="job"),
    path("jobs/<uuid:job_id>/cancel/", jobs.cancel, name="cancel_job"),
    path("jobs/<uuid:job_id>/retry/", jobs.retry, name="retry_job"),
    # overview/, models/, health/
    *engine_urls.urlpatterns,
    # access/, keys/
    *access_urls.urlpatterns,
    # connections/
    path("connections/", connections.connections, name="connections"),
    path("connections/new/", connection_edit.new_connection, name="new_connection"),
    path("connections/new/sight/", connection_edit.connection_sight, name="new_connection_sight"),
    path("connections/new/<slug:kind>/", connection_edit.new_connection_of, name="new_connection_of"),
    path("connections/<slug:slug>/", connections.connection, name="connection"),
    path("connections/<slug:slug>/progress/", connections.connection_progress, name="connection_progress"),
    path("connections/<slug:slug>/quality/", connections.connection_quality, name="connection_quality"),
    path("connections/<slug:slug>/sync/", connections.sync_connection, name="sync_connection"),
    path("connections/<slug:slug>/edit/", connection_edit.edit_connection, name="edit_connection"),
    path("connections/<slug:slug>/sight/", connection_edit.connection_sight, name="connection_sight"),
    path("connections/<slug:slug>/switch/", connections.switch, name="switch_connection"),
    path("connections/<slug:slug>/delete/", connection_edit.remove_connection, name="delete_connection"),
    path("connections/<slug:slug>/upload/", connections.upload, name="upload"),
    # sources/: what connections were called before
    re_path(r"^sources/(?P<rest>[-\w/]*)$", connections.moved),
]
