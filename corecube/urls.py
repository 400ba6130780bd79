"""URLs of the application, by app."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from corecube.oidc import views as oidc
from corecube.sign_ins import ChangePasswordView, SetPasswordView

urlpatterns = [
    path("favicon.ico", RedirectView.as_view(url="/static/favicon.svg")),
    path("login/", oidc.SignInView.as_view(), name="login"),
    path("login/provider/", oidc.start, name="oidc_start"),
    path("login/provider/callback/", oidc.callback, name="oidc_callback"),
    path("logout/", oidc.SignOutView.as_view(), name="logout"),
    path("logout/done/", oidc.signed_out, name="signed_out"),
    path("logout/provider/", oidc.sign_out_there, name="oidc_sign_out"),
    path("password/", ChangePasswordView.as_view(), name="change_password"),
    path("password/set/<uidb64>/<token>/", SetPasswordView.as_view(), name="set_password"),
    # The form of the Django admin has no limit of failed attempts.
    path("admin/password_change/", RedirectView.as_view(pattern_name="change_password")),
    path("admin/", admin.site.urls),
    path("", include("corecube.oauth.urls")),
    path("", include("retrieval.urls")),
    path("", include("explorer.urls")),
]
