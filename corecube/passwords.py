"""Setting one's own password: by the link that an admin hands over, and later by the old one."""

from django.contrib import messages
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.views import PasswordChangeView, PasswordResetConfirmView
from django.core.exceptions import ValidationError
from django.forms import BaseForm
from django.http import HttpResponse
from django.urls import reverse_lazy

from corecube import audit
from corecube.models import User
from corecube.sign_in_limits import Attempt, SignInLimitError, count, give_back, lift


class SetPasswordView(PasswordResetConfirmView):
    """The page that a one-time link leads to."""

    template_name = "registration/set_password.html"
    success_url = reverse_lazy("login")

    def form_valid(self, form: BaseForm) -> HttpResponse:
        """Keep the password, forget failed sign-ins under the name, and record that it was set by a link."""
        response = super().form_valid(form)
        if isinstance(self.user, User):
            lift(username=self.user.username)
            audit.record("user.password_set", actor=self.user, subject=self.user.username)
        return response


class ChangePasswordForm(PasswordChangeForm):
    """Limits how often the old password can be guessed by whoever finds a browser signed in."""

    def clean_old_password(self) -> str:
        """Check the old password; refuse it unread after too many that were wrong."""
        attempt = Attempt.of(self.user.get_username(), "", browser="password change")
        try:
            count(attempt)
        except SignInLimitError as error:
            raise ValidationError(str(error), code=error.code) from error
        old: str = super().clean_old_password()
        give_back(attempt)
        return old


class ChangePasswordView(PasswordChangeView):
    """The page at which a signed-in user changes their password."""

    form_class = ChangePasswordForm
    template_name = "registration/change_password.html"
    success_url = reverse_lazy("explorer:search")

    def form_valid(self, form: BaseForm) -> HttpResponse:
        """Keep the password, stay signed in here and nowhere else, and record it."""
        response = super().form_valid(form)
        if isinstance(self.request.user, User):
            audit.record("user.password_changed", actor=self.request.user, subject=self.request.user.username)
        messages.success(self.request, "Your password was changed. Other browsers are signed out.")
        return response
