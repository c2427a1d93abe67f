"""The tables of version 1.0.0. A new database is made with the declared tables instead."""

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None
