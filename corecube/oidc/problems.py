"""What keeps a sign-in through the provider from happening, in words for the person who tries it."""

from typing import ClassVar

from corecube.errors import CoreCubeError


class SignInError(CoreCubeError):
    """The sign-in did not work. Start it again."""

    status: ClassVar[int] = 400
    code: ClassVar[str] = "sign_in_failed"


class LostSignInError(SignInError):
    """This sign-in was begun in another browser, or too long ago. Start it again."""

    code: ClassVar[str] = "sign_in_lost"


class DeclinedSignInError(SignInError):
    """The provider did not let you sign in."""

    status: ClassVar[int] = 403
    code: ClassVar[str] = "sign_in_declined"


class UntrustedAnswerError(SignInError):
    """The provider's answer could not be verified, so nobody was signed in. Start again; if it stays, tell an admin."""

    status: ClassVar[int] = 403
    code: ClassVar[str] = "sign_in_untrusted"


class NoAccountError(SignInError):
    """You have no account here yet. An admin can give you one."""

    status: ClassVar[int] = 403
    code: ClassVar[str] = "sign_in_unknown"


class InactiveAccountError(SignInError):
    """Your account here is not active. An admin can activate it."""

    status: ClassVar[int] = 403
    code: ClassVar[str] = "sign_in_inactive"


class ProviderDownError(SignInError):
    """The sign-in provider does not answer. Try again in a moment."""

    status: ClassVar[int] = 503
    code: ClassVar[str] = "sign_in_provider_down"
