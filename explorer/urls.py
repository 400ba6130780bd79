"""URLs of the pages. Each page has a folder in `explorer/pages` and a line here."""

from django.urls import include, path

app_name = "explorer"
urlpatterns = [
    path("", include("explorer.pages.explorer.urls")),
    path("", include("explorer.pages.chat.urls")),
    path("", include("explorer.pages.compare.urls")),
    path("", include("explorer.pages.side_by_side.urls")),
    path("", include("explorer.pages.documents.urls")),
    path("", include("explorer.pages.evidence.urls")),
    path("", include("explorer.pages.evaluation.urls")),
    path("", include("explorer.pages.log.urls")),
    path("", include("explorer.pages.presets.urls")),
    path("", include("explorer.pages.connections.urls")),
    path("", include("explorer.pages.models.urls")),
    path("", include("explorer.pages.health.urls")),
    path("", include("explorer.pages.access.urls")),
]
