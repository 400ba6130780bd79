"""Queries that every search asks: Django writes them once, which takes it longer than asking them."""

from typing import Any

from django.db import connection
from django.db.models import Model, QuerySet

from corecube.database import Prepared, execution


class CompiledQuery:
    """The first row of a queryset, as written when this was made."""

    def __init__(self, rows: QuerySet[Any, Any]) -> None:
        sql, parameters = rows[:1].query.sql_with_params()
        self._parameters = {f"parameter_{place}": it for place, it in enumerate(parameters)}
        self._sql = Prepared(sql % tuple(f"%({name})s" for name in self._parameters))

    def first(self) -> tuple[Any, ...] | None:
        """Return the first row that there is now, JSON as its text; None without one."""
        with connection.cursor() as cursor:
            cursor.execute(execution(cursor, self._sql), self._parameters)
            row: tuple[Any, ...] | None = cursor.fetchone()
        return row


def instance_of(model: type[Model], row: tuple[Any, ...]) -> Any:  # noqa: ANN401 -- an instance of `model`
    """Return a row of all of a model's columns as an instance; raise TypeError where Django would convert one."""
    fields = model._meta.concrete_fields  # noqa: SLF001 -- Django's documented way to the fields
    if any(hasattr(field, "from_db_value") for field in fields):
        message = f"Django converts columns of {model.__name__}."
        raise TypeError(message)
    return model.from_db(connection.alias, [field.attname for field in fields], row)
