"""Errors of a sign-in through the provider, with messages for the user."""

from typing import ClassVar

from corecube.errors import CoreCubeError


class SignInError(CoreCubeError):
    """The sign-in failed. Try again."""

    status: ClassVar[int] = 400
    code: ClassVar[str] = "sign_in_failed"


class LostSignInError(SignInError):
    """This sign-in was started in another browser or has expired. Try again."""

    code: ClassVar[str] = "sign_in_lost"


class DeclinedSignInError(SignInError):
    """The provider declined the sign-in."""

    status: ClassVar[int] = 403
    code: ClassVar[str] = "sign_in_declined"


class UntrustedAnswerError(SignInError):
    """The response of the provider could not be verified. Try again. If it fails again, contact an admin."""

    status: ClassVar[int] = 403
    code: ClassVar[str] = "sign_in_untrusted"


class NoAccountError(SignInError):
    """You have no account yet. Ask an admin for one."""

    status: ClassVar[int] = 403
    code: ClassVar[str] = "sign_in_unknown"


class InactiveAccountError(SignInError):
    """Your account is inactive. Ask an admin to activate it."""

    status: ClassVar[int] = 403
    code: ClassVar[str] = "sign_in_inactive"


class ProviderDownError(SignInError):
    """The sign-in provider does not respond. Try again in a moment."""

    status: ClassVar[int] = 503
    code: ClassVar[str] = "sign_in_provider_down"
