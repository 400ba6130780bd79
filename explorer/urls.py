"""Addresses of the pages: each page has its own, and a line here."""

from explorer.pages.access.urls import urlpatterns as access
from explorer.pages.chat.urls import urlpatterns as chat
from explorer.pages.compare.urls import urlpatterns as compare
from explorer.pages.connections.urls import urlpatterns as connections
from explorer.pages.documents.urls import urlpatterns as documents
from explorer.pages.evaluation.urls import urlpatterns as evaluation
from explorer.pages.evidence.urls import urlpatterns as evidence
from explorer.pages.explorer.urls import urlpatterns as explorer
from explorer.pages.health.urls import urlpatterns as health
from explorer.pages.log.urls import urlpatterns as log
from explorer.pages.models.urls import urlpatterns as models
from explorer.pages.presets.urls import urlpatterns as presets
from explorer.pages.side_by_side.urls import urlpatterns as side_by_side

app_name = "explorer"
urlpatterns = [
    *explorer,
    *chat,
    *compare,
    *side_by_side,
    *documents,
    *evidence,
    *evaluation,
    *log,
    *presets,
    *connections,
    *models,
    *health,
    *access,
]
