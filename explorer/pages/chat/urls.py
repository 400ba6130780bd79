"""Addresses of the chat page."""

from django.urls import path

from explorer.pages.chat import answers, views

_ANSWER = "chat/<uuid:conversation_id>/{}/<uuid:message_id>/"

urlpatterns = [
    path("chat/", views.new, name="chat"),
    path("chat/history/", views.history, name="chat_history"),
    path("chat/history/delete/", views.delete_everything, name="chat_delete_all"),
    path("chat/<uuid:conversation_id>/", views.conversation, name="conversation"),
    path(_ANSWER.format("events"), answers.stream, name="chat_events"),
    path(_ANSWER.format("stop"), answers.stop_answer, name="chat_stop"),
    path(_ANSWER.format("answer"), answers.answer, name="chat_answer"),
    path(_ANSWER.format("retry"), answers.retry_answer, name="chat_retry"),
    path(_ANSWER.format("rate"), answers.rate, name="chat_rate"),
    path(_ANSWER.format("passage") + "<int:number>/", answers.passage, name="chat_passage"),
    path("chat/<uuid:conversation_id>/rename/", views.rename_one, name="chat_rename"),
    path("chat/<uuid:conversation_id>/delete/", views.delete_one, name="chat_delete"),
    path("chat/<uuid:conversation_id>/export.<str:kind>", views.export, name="chat_export"),
]
