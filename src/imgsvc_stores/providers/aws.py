"""S3 of Amazon Web Services."""

from __future__ import annotations

from imgsvc_core.spec.store.declarations import Aws
from imgsvc_stores.access import Access
from imgsvc_stores.providers import s3


async def connect(access: Access) -> s3.S3Session:
    """Open a session at the regional endpoint."""
    spec = access.spec
    assert isinstance(spec, Aws)
    domain = "amazonaws.com.cn" if spec.region.startswith("cn-") else "amazonaws.com"
    address = f"https://s3.{spec.region}.{domain}"
    return await s3.connect(access, address, region=spec.region, key=spec.key, secret=spec.secret)
