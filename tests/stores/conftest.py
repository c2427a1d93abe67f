"""Servers that several tests of a run share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.stores.s3_server import S3Server, s3_server


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """A server that speaks S3, with one user and one bucket."""
    with s3_server() as server:
        yield server
