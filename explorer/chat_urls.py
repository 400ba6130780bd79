"""Addresses of the chat page."""

from django.urls import path

from explorer.views import chat, chat_answers, chat_history, chat_stream

_ANSWER = "chat/<uuid:conversation_id>/{}/<uuid:message_id>/"

urlpatterns = [
    path("chat/", chat.new, name="chat"),
    path("chat/history/", chat_history.history, name="chat_history"),
    path("chat/history/delete/", chat_history.delete_everything, name="chat_delete_all"),
    path("chat/<uuid:conversation_id>/", chat.conversation, name="conversation"),
    path(_ANSWER.format("events"), chat_stream.stream, name="chat_events"),
    path(_ANSWER.format("stop"), chat_stream.stop_answer, name="chat_stop"),
    path(_ANSWER.format("answer"), chat_answers.answer, name="chat_answer"),
    path(_ANSWER.format("retry"), chat_answers.retry_answer, name="chat_retry"),
    path(_ANSWER.format("rate"), chat_answers.rate, name="chat_rate"),
    path(_ANSWER.format("passage") + "<int:number>/", chat_answers.passage, name="chat_passage"),
    path("chat/<uuid:conversation_id>/rename/", chat_history.rename_one, name="chat_rename"),
    path("chat/<uuid:conversation_id>/delete/", chat_history.delete_one, name="chat_delete"),
    path("chat/<uuid:conversation_id>/export.<str:kind>", chat_history.export, name="chat_export"),
]
