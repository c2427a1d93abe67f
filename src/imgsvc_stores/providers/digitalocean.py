"""Spaces of DigitalOcean."""

from __future__ import annotations

from imgsvc_core.spec.store.declarations import DigitalOcean
from imgsvc_stores.access import Access
from imgsvc_stores.providers import s3


async def connect(access: Access) -> s3.S3Session:
    """Open a session at the regional endpoint. Spaces expect signatures for one region."""
    spec = access.spec
    assert isinstance(spec, DigitalOcean)
    address = f"https://{spec.region}.digitaloceanspaces.com"
    return await s3.connect(access, address, region="us-east-1", key=spec.key, secret=spec.secret)
