"""Errors of a sign-in through the provider, with messages for the user."""

from corecube.errors import CoreCubeError


class SignInError(CoreCubeError, status=400, code="sign_in_failed"):
    """The sign-in failed. Try again."""


class LostSignInError(SignInError, code="sign_in_lost"):
    """This sign-in was started in another browser or has expired. Try again."""


class DeclinedSignInError(SignInError, status=403, code="sign_in_declined"):
    """The provider declined the sign-in."""


class UntrustedAnswerError(SignInError, status=403, code="sign_in_untrusted"):
    """The response of the provider could not be verified. Try again. If it fails again, contact an admin."""


class NoAccountError(SignInError, status=403, code="sign_in_unknown"):
    """You have no account yet. Ask an admin for one."""


class InactiveAccountError(SignInError, status=403, code="sign_in_inactive"):
    """Your account is inactive. Ask an admin to activate it."""


class ProviderDownError(SignInError, status=503, code="sign_in_provider_down"):
    """The sign-in provider does not respond. Try again in a moment."""
