"""Pages to set a password: with a link from an admin, or with the old password."""

from django.contrib import messages
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.views import PasswordChangeView, PasswordResetConfirmView
from django.core.exceptions import ValidationError
from django.forms import BaseForm
from django.http import HttpResponse
from django.urls import reverse_lazy

from corecube import audit
from corecube.models import User
from corecube.sign_in_limits import Attempt, SignInLimitError, count, reset_limits, undo_attempt


class SetPasswordView(PasswordResetConfirmView):
    """The page of a one-time link."""

    template_name = "registration/set_password.html"
    success_url = reverse_lazy("login")

    def form_valid(self, form: BaseForm) -> HttpResponse:
        """Store the password, reset the limits of failed sign-ins, and record the event."""
        response = super().form_valid(form)
        if isinstance(self.user, User):
            reset_limits(username=self.user.username)
            audit.record("user.password_set", actor=self.user, subject=self.user.username)
        return response


class ChangePasswordForm(PasswordChangeForm):
    """Limits attempts at the old password in a signed-in browser."""

    def clean_old_password(self) -> str:
        """Check the old password; reject it after too many failures."""
        attempt = Attempt.of(self.user.get_username(), "", browser="password change")
        try:
            count(attempt)
        except SignInLimitError as error:
            raise ValidationError(str(error), code=error.code) from error
        old: str = super().clean_old_password()
        undo_attempt(attempt)
        return old


class ChangePasswordView(PasswordChangeView):
    """The page to change the password."""

    form_class = ChangePasswordForm
    template_name = "registration/change_password.html"
    success_url = reverse_lazy("explorer:search")

    def form_valid(self, form: BaseForm) -> HttpResponse:
        """Store the password, end all other sessions, and record the event."""
        response = super().form_valid(form)
        if isinstance(self.request.user, User):
            audit.record("user.password_changed", actor=self.request.user, subject=self.request.user.username)
        messages.success(self.request, "Your password was changed. All other sessions were signed out.")
        return response
