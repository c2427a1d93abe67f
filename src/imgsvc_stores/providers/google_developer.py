"""Google Cloud Storage with developer (HMAC) keys, through its S3-compatible API."""

from __future__ import annotations

from imgsvc_core.spec.store.declarations import Google
from imgsvc_stores.access import Access
from imgsvc_stores.providers import s3


async def connect(access: Access) -> s3.S3Session:
    """Open a session at the global endpoint."""
    spec = access.spec
    assert isinstance(spec, Google)
    return await s3.connect(
        access,
        "https://storage.googleapis.com",
        region="auto",
        host_style=False,
        key=spec.key,
        secret=spec.secret,
    )
