"""URLs of the pages, by folder of `explorer/pages`."""

from django.urls import path, re_path

from explorer.pages.access import audit, clearances, compartments, give, keys, people
from explorer.pages.chat import answers, files, sharing
from explorer.pages.chat import views as chat
from explorer.pages.compare import views as compare
from explorer.pages.connections import edit, jobs
from explorer.pages.connections import views as connections
from explorer.pages.documents import views as documents
from explorer.pages.evaluation import (
    comparison,
    experiments,
    gates,
    judge,
    judging,
    runs,
    schedules,
    sweeps,
    unanswered,
    use,
)
from explorer.pages.evaluation import views as evaluation
from explorer.pages.evidence import section_sets
from explorer.pages.evidence import views as evidence
from explorer.pages.explorer import views as search
from explorer.pages.feedback import views as feedback
from explorer.pages.find import views as find
from explorer.pages.health import views as health
from explorer.pages.log import views as log
from explorer.pages.models import language_models, routes, usage
from explorer.pages.models import views as models
from explorer.pages.presets import views as presets
from explorer.pages.prompts import views as prompts
from explorer.pages.side_by_side import views as side_by_side

app_name = "explorer"
_ANSWER = "chat/<uuid:conversation_id>/{}/<uuid:message_id>/"

urlpatterns = [
    # explorer/pages/explorer
    path("", search.home, name="home"),
    path("explorer/", search.search, name="search"),
    path("answer/<uuid:record_id>/", search.answer, name="answer"),
    path("queued/", search.ask, name="queue_search"),
    path("queued/<uuid:search_id>/", search.queued, name="queued_search"),
    # explorer/pages/find
    path("find/", find.find_by_name, name="find"),
    # explorer/pages/chat
    path("chat/", chat.new, name="chat"),
    path("chat/history/", chat.history, name="chat_history"),
    path("chat/history/delete/", chat.delete_everything, name="chat_delete_all"),
    path("chat/files/", files.attach_first, name="chat_attach"),
    path("chat/<uuid:conversation_id>/", chat.conversation, name="conversation"),
    path("chat/<uuid:conversation_id>/files/", files.conversation_files, name="chat_files"),
    path("chat/<uuid:conversation_id>/files/remove/", files.remove_file, name="chat_file_remove"),
    path(_ANSWER.format("events"), answers.stream, name="chat_events"),
    path(_ANSWER.format("stop"), answers.stop_answer, name="chat_stop"),
    path(_ANSWER.format("answer"), answers.answer, name="chat_answer"),
    path(_ANSWER.format("retry"), answers.retry_answer, name="chat_retry"),
    path(_ANSWER.format("rate"), answers.rate, name="chat_rate"),
    path(_ANSWER.format("passage") + "<int:number>/", answers.passage, name="chat_passage"),
    path("chat/shared/<uuid:link>/", sharing.shared, name="shared"),
    path("chat/<uuid:conversation_id>/share/", sharing.share_one, name="chat_share"),
    path("chat/<uuid:conversation_id>/stop-sharing/", sharing.stop_sharing_one, name="chat_stop_sharing"),
    path("chat/<uuid:conversation_id>/rename/", chat.rename_one, name="chat_rename"),
    path("chat/<uuid:conversation_id>/delete/", chat.delete_one, name="chat_delete"),
    path("chat/<uuid:conversation_id>/export.<str:kind>", chat.export, name="chat_export"),
    # explorer/pages/prompts
    path("prompts/", prompts.prompts, name="prompts"),
    path("prompts/<int:prompt_id>/", prompts.prompt, name="prompt"),
    path("prompts/<int:prompt_id>/delete/", prompts.remove_prompt, name="remove_prompt"),
    # explorer/pages/feedback
    path("feedback/", feedback.feedback, name="feedback"),
    # explorer/pages/compare
    path("compare/", compare.compare, name="compare"),
    path("compare/query/", compare.compared_query, name="compared_query"),
    # explorer/pages/side_by_side
    path("side-by-side/", side_by_side.side_by_side, name="side_by_side"),
    # explorer/pages/documents
    path("documents/", documents.documents, name="documents"),
    path("documents/<uuid:document_id>/", documents.document, name="document"),
    # explorer/pages/evidence
    path("evidence/", evidence.evidence, name="evidence"),
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
    # explorer/pages/evaluation
    path("judge/", judge.judge_hit, name="judge"),
    path("judge/case/", judge.save_as_case, name="save_as_case"),
    path("use/<uuid:record_id>/", use.note_use, name="note_use"),
    path("unanswered/", unanswered.unanswered_questions, name="unanswered"),
    path("judgments/", evaluation.question_sets, name="judgments"),
    path("judgments/cases/<uuid:case_id>/", evaluation.change_case, name="change_case"),
    path("judgments/<slug:slug>/", evaluation.question_set, name="question_set"),
    path("judgments/cases/<uuid:case_id>/grade/", judging.grade_pooled, name="grade_pooled"),
    path("judgments/<slug:slug>/draw/", evaluation.draw_questions, name="draw_questions"),
    path("judgments/<slug:slug>/judge/", judging.judging_queue, name="judging_queue"),
    path("judgments/<slug:slug>/disputed/", judging.disputed, name="disputed"),
    path("judgments/<slug:slug>/disputed/decide/", judging.decide, name="decide"),
    path("judgments/<slug:slug>/delete/", evaluation.remove_set, name="delete_question_set"),
    path("judgments/<slug:slug>/runs/", runs.start_run, name="start_run"),
    path("runs/compare/", comparison.compare_runs, name="compare_runs"),
    path("judgments/<slug:slug>/gates/", gates.change_gate, name="change_gate"),
    path("judgments/<slug:slug>/schedules/", schedules.change_schedule, name="change_schedule"),
    path("experiments/", experiments.experiments, name="experiments"),
    path("experiments/<uuid:experiment_id>/stop/", experiments.stop_experiment, name="stop_experiment"),
    path("sweeps/", sweeps.sweeps, name="sweeps"),
    path("sweeps/new/", sweeps.new_sweep, name="new_sweep"),
    path("sweeps/<uuid:sweep_id>/", sweeps.sweep, name="sweep"),
    path("sweeps/<uuid:sweep_id>/change/", sweeps.change_sweep, name="change_sweep"),
    path("runs/<uuid:run_id>/", runs.evaluation_run, name="evaluation_run"),
    path("runs/<uuid:run_id>/change/", runs.change_run, name="change_run"),
    path("runs/<uuid:run_id>/export.<str:kind>", runs.export_run, name="export_run"),
    path("judgments/<slug:slug>/import/", evaluation.import_judgments, name="import_judgments"),
    path("judgments/<slug:slug>/export.<str:kind>", evaluation.export, name="export_judgments"),
    # explorer/pages/log
    path("log/", log.log, name="log"),
    path("log/<uuid:record_id>/", log.record, name="record"),
    # explorer/pages/presets
    path("presets/", presets.presets, name="presets"),
    path("presets/<str:name>/", presets.preset, name="preset"),
    path("presets/<str:name>/effect/", presets.preset_effect, name="preset_effect"),
    path("presets/<str:name>/discard/", presets.discard_draft, name="discard_draft"),
    path("presets/<str:name>/promote/<int:number>/", presets.promote, name="promote"),
    path("presets/<str:name>/promote/<int:number>/gates/", gates.promotion_gates, name="promotion_gates"),
    path("presets/<str:name>/promote/<int:number>/measure/", gates.measure_gates, name="measure_gates"),
    path("presets/<str:name>/rollback/", gates.roll_back, name="roll_back"),
    # explorer/pages/connections
    path("jobs/", jobs.jobs, name="jobs"),
    path("jobs/<uuid:job_id>/", jobs.job, name="job"),
    path("jobs/<uuid:job_id>/cancel/", jobs.cancel, name="cancel_job"),
    path("jobs/<uuid:job_id>/retry/", jobs.retry, name="retry_job"),
    path("connections/", connections.connections, name="connections"),
    path("connections/new/", edit.new_connection, name="new_connection"),
    path("connections/new/access/", edit.connection_access, name="new_connection_access"),
    path("connections/new/<slug:kind>/", edit.new_connection_of, name="new_connection_of"),
    path("connections/<slug:slug>/", connections.connection, name="connection"),
    path("connections/<slug:slug>/first-sync/", connections.first_sync, name="first_sync"),
    path("connections/<slug:slug>/progress/", connections.connection_progress, name="connection_progress"),
    path("connections/<slug:slug>/quality/", connections.connection_quality, name="connection_quality"),
    path("connections/<slug:slug>/sync/", connections.sync_connection, name="sync_connection"),
    path("connections/<slug:slug>/edit/", edit.edit_connection, name="edit_connection"),
    path("connections/<slug:slug>/access/", edit.connection_access, name="connection_access"),
    path("connections/<slug:slug>/switch/", connections.switch, name="switch_connection"),
    path("connections/<slug:slug>/delete/", edit.remove_connection, name="delete_connection"),
    path("connections/<slug:slug>/upload/", connections.upload, name="upload"),
    re_path(r"^sources/(?P<rest>[-\w/]*)$", connections.moved),
    # explorer/pages/models
    path("models/", models.models, name="models"),
    path("models/indexes/", models.start_index, name="start_index"),
    path("models/indexes/<int:number>/build/", models.build_index, name="build_index"),
    path("models/indexes/<int:number>/switch/", models.switch_index, name="switch_index"),
    path("models/indexes/<int:number>/drop/", models.drop_index, name="drop_index"),
    path("language-models/", language_models.language_models, name="language_models"),
    path("language-models/new/", language_models.new_language_model, name="new_language_model"),
    path("language-models/local/", language_models.local_models, name="local_models"),
    path("language-models/usage/", usage.usage, name="usage"),
    path("language-models/routing/", language_models.set_rule, name="set_rule"),
    path("language-models/routing/<int:number>/remove/", language_models.remove_rule, name="remove_rule"),
    path("language-models/<slug:slug>/", language_models.edit_language_model, name="edit_language_model"),
    path("language-models/<slug:slug>/test/", language_models.test_language_model, name="test_language_model"),
    path("language-models/<slug:slug>/delete/", language_models.delete_language_model, name="delete_language_model"),
    path("routes/", routes.routes, name="routes"),
    path("routes/<int:number>/delete/", routes.remove_example, name="remove_route_example"),
    # explorer/pages/health
    path("overview/", health.overview, name="overview"),
    path("overview/jobs/", health.overview_jobs, name="overview_jobs"),
    path("overview/guide/dismiss/", health.dismiss_guide, name="dismiss_guide"),
    path("health/", health.health, name="health"),
    # explorer/pages/access
    # access/compartments/
    path("access/compartments/", compartments.compartments, name="compartments"),
    path("access/compartments/new/", compartments.new_compartment, name="new_compartment"),
    path("access/compartments/<slug:slug>/", compartments.compartment, name="compartment"),
    path("access/compartments/<slug:slug>/delete/", compartments.delete, name="delete_compartment"),
    # access/clearances/
    path("access/clearances/", clearances.clearances, name="clearances"),
    path("access/clearances/change/", clearances.change, name="change_clearance"),
    path("access/give/", give.give_access, name="give_access"),
    path("access/give/preview/", give.preview, name="preview_access"),
    path("access/give/users/", give.find_users, name="find_users"),
    # access/users/
    path("access/users/", people.users, name="users"),
    path("access/users/names/", people.names, name="user_names"),
    path("access/users/new/", people.new_user, name="new_user"),
    path("access/users/new/access/", give.preview_user, name="preview_user"),
    path("access/users/<int:user_id>/", people.user, name="user"),
    path("access/users/<int:user_id>/groups/", people.change_groups, name="change_groups"),
    path("access/users/<int:user_id>/active/", people.change_active, name="change_active"),
    path("access/users/<int:user_id>/admin/", people.change_admin, name="change_admin"),
    path("access/users/<int:user_id>/link/", people.new_link, name="new_link"),
    # access/groups/
    path("access/groups/", people.groups, name="groups"),
    path("access/groups/new/", people.new_group, name="new_group"),
    path("access/groups/<int:group_id>/", people.group, name="group"),
    path("access/groups/<int:group_id>/member/", people.change_member, name="change_member"),
    path("access/groups/<int:group_id>/delete/", people.delete, name="delete_group"),
    path("access/groups/<int:group_id>/claims/", people.add_claim, name="add_claim"),
    path("access/groups/<int:group_id>/claims/<int:claim_id>/delete/", people.remove_claim, name="remove_claim"),
    # access/keys/, keys/
    path("access/keys/", keys.keys, name="keys"),
    path("access/keys/<uuid:key_id>/forwarding/", keys.forwarding, name="key_forwarding"),
    path("keys/", keys.own_keys, name="own_keys"),
    path("keys/new/", keys.new_key, name="new_key"),
    path("keys/<uuid:key_id>/revoke/", keys.revoke, name="revoke_key"),
    path("keys/clients/<int:client_id>/<int:user_id>/disconnect/", keys.disconnect_client, name="disconnect_client"),
    # access/audit/
    path("access/audit/", audit.audit, name="audit"),
    path("access/audit/export/", audit.export, name="audit_export"),
]
