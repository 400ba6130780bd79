"""The transaction of a change: what somebody else makes or takes away meanwhile is said, and is no server error."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.core.exceptions import ObjectDoesNotExist
from django.db import IntegrityError, transaction
from psycopg import errors

from corecube.errors import ConflictError, NotFoundError

_PARTED: Final = "Something that it belongs to has just been deleted."


@contextmanager
def changing(taken: str = "") -> Iterator[None]:
    """Run a block, or as a decorator a function, in one transaction.

    Raises ConflictError when another change has just taken what may be there once, in the words of `taken`, or has
    deleted what this one refers to; NotFoundError when it has deleted the very thing.
    """
    try:
        with transaction.atomic():
            yield
    except IntegrityError as error:
        if isinstance(error.__cause__, errors.UniqueViolation):
            raise ConflictError(taken) from error
        if isinstance(error.__cause__, errors.ForeignKeyViolation):
            raise ConflictError(_PARTED) from error
        raise
    except ObjectDoesNotExist as error:
        raise NotFoundError("It has just been deleted.") from error
