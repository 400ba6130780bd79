"""URLs of documents."""

from django.urls import path

from explorer.pages.documents import views

urlpatterns = [
    path("documents/", views.documents, name="documents"),
    path("documents/<uuid:document_id>/", views.document, name="document"),
]
