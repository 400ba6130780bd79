"""Addresses of OAuth: the names that django-oauth-toolkit looks up, and none of its other pages."""

from django.urls import path
from oauth2_provider.views import OAuthServerMetadataView

from corecube.oauth.registration import register
from corecube.oauth.views import AuthorizeView, ResourceView, RevokeView, TokenView

app_name = "oauth2_provider"

urlpatterns = [
    path(".well-known/oauth-protected-resource", ResourceView.as_view(), name="oauth-resource-metadata"),
    path(".well-known/oauth-protected-resource/mcp", ResourceView.as_view()),
    path(".well-known/oauth-authorization-server", OAuthServerMetadataView.as_view(), name="oauth-server-metadata"),
    path("oauth/register", register, name="dcr-register"),
    path("oauth/authorize", AuthorizeView.as_view(), name="authorize"),
    path("oauth/token", TokenView.as_view(), name="token"),
    path("oauth/revoke", RevokeView.as_view(), name="revoke-token"),
]
