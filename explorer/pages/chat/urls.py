"""Addresses of the chat page."""

from django.urls import path

from explorer.pages.chat import answers, history, stream, views

_ANSWER = "chat/<uuid:conversation_id>/{}/<uuid:message_id>/"

urlpatterns = [
    path("chat/", views.new, name="chat"),
    path("chat/history/", history.history, name="chat_history"),
    path("chat/history/delete/", history.delete_everything, name="chat_delete_all"),
    path("chat/<uuid:conversation_id>/", views.conversation, name="conversation"),
    path(_ANSWER.format("events"), stream.stream, name="chat_events"),
    path(_ANSWER.format("stop"), stream.stop_answer, name="chat_stop"),
    path(_ANSWER.format("answer"), answers.answer, name="chat_answer"),
    path(_ANSWER.format("retry"), answers.retry_answer, name="chat_retry"),
    path(_ANSWER.format("rate"), answers.rate, name="chat_rate"),
    path(_ANSWER.format("passage") + "<int:number>/", answers.passage, name="chat_passage"),
    path("chat/<uuid:conversation_id>/rename/", history.rename_one, name="chat_rename"),
    path("chat/<uuid:conversation_id>/delete/", history.delete_one, name="chat_delete"),
    path("chat/<uuid:conversation_id>/export.<str:kind>", history.export, name="chat_export"),
]
