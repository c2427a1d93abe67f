"""Opening a session with the provider of a store."""

from __future__ import annotations

import asyncio
import importlib

from imgsvc_core.errors import MissingDependency
from imgsvc_stores.access import Access, Session

_MODULES = {
    "aws": "signed_s3",
    "google": "signed_s3",
    "google keyfile": "google_keyfile",
    "digitalocean": "signed_s3",
    "alibaba": "alibaba",
    "rackspace": "rackspace",
    "microsoft": "microsoft",
    "ibm": "ibm",
}
"""Modules of `imgsvc_stores.providers`; each has ``async def connect(access: Access) -> Session``."""


async def connect(access: Access) -> Session:
    """Open a session with the provider of a store.

    Raises:
        MissingDependency: the packages for the provider are not installed.
        StoreRefused: the provider refused the credentials.
        StoreUnavailable: the provider could not be reached.
    """
    kind = access.spec.provider + (" keyfile" if access.keyfile is not None else "")
    extra = "s3" if kind == "google" else access.spec.extra
    try:
        name = f"imgsvc_stores.providers.{_MODULES[kind]}"
        # The first import takes a quarter of a second.
        module = await asyncio.to_thread(importlib.import_module, name)
    except ImportError as error:
        raise MissingDependency(
            f"Storing at {access.spec.provider} needs a package that is not installed ({error.name}): "
            f"install imgsvc[{extra}]."
        ) from error
    session: Session = await module.connect(access)
    return session
