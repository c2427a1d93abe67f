"""Stores with signatures of S3: AWS, Spaces of DigitalOcean, and Google with developer (HMAC) keys."""

from __future__ import annotations

from imgsvc_core.spec.store.declarations import Aws, DigitalOcean, Google
from imgsvc_stores.access import Access
from imgsvc_stores.providers import s3


async def connect(access: Access) -> s3.S3Session:
    """Open a session at the endpoint of the provider."""
    spec = access.spec
    assert isinstance(spec, Aws | DigitalOcean | Google)
    match spec:
        case Aws():
            domain = "amazonaws.com.cn" if spec.region.startswith("cn-") else "amazonaws.com"
            address, region = f"https://s3.{spec.region}.{domain}", spec.region
        case DigitalOcean():
            address, region = f"https://{spec.region}.digitaloceanspaces.com", "us-east-1"  # for all regions
        case Google():
            address, region = "https://storage.googleapis.com", "auto"
    host_style = not isinstance(spec, Google)
    return await s3.connect(
        access, address, region=region, host_style=host_style, key=spec.key, secret=spec.secret
    )
