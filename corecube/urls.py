"""Every address of the application, by app."""

from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import include, path
from django.views.generic import RedirectView

from corecube.passwords import ChangePasswordView, SetPasswordView

urlpatterns = [
    path("favicon.ico", RedirectView.as_view(url="/static/favicon.svg")),
    path("login/", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("password/", ChangePasswordView.as_view(), name="change_password"),
    path("password/set/<uidb64>/<token>/", SetPasswordView.as_view(), name="set_password"),
    path("admin/", admin.site.urls),
    path("", include("retrieval.urls")),
    path("", include("explorer.urls")),
]
