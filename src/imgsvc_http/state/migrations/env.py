"""Run by alembic: the migrations of the service's own tables, on the connection that it is given."""

from __future__ import annotations

from typing import Any

from alembic import context

from imgsvc_http.state.migrating import VERSION_TABLE
from imgsvc_http.state.tables import Base


def _is_ours(item: Any, name: str | None, kind: str, _reflected: bool, _other: object) -> bool:
    return name in Base.metadata.tables if kind == "table" else True


if hasattr(context, "config"):  # alembic runs this file; others may import it
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=Base.metadata,
        include_object=_is_ours,
        version_table=VERSION_TABLE,
        render_as_batch=True,
        transaction_per_migration=False,
    )
    context.run_migrations()
