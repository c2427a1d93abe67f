"""Run by alembic: the migrations of the service's own tables, on the connection that it is given."""

from __future__ import annotations

from alembic import context

from imgsvc_http.state.migrating import VERSION_TABLE
from imgsvc_http.state.tables import Base

if hasattr(context, "config"):  # alembic runs this file; others may import it
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=Base.metadata,
        version_table=VERSION_TABLE,
        transaction_per_migration=False,
    )
    context.run_migrations()
