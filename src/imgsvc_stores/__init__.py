"""Stores: cloud storage for results.

This is the one room of the library with an event loop. Its asynchronous clients are reached through
`StorePool` and `Store`; `write` is the door for code without a loop.

>>> import imgsvc_stores as stores
>>> stores.parse_store({"provider": "ibm", "key": "secret", "bucket": "cats", "region": "eu-de"}).bucket
'cats'
"""

from imgsvc_core.spec.store.declarations import (
    ENDPOINTS,
    PROVIDERS,
    Alibaba,
    Aws,
    DigitalOcean,
    Google,
    Ibm,
    Microsoft,
    Rackspace,
    StoreSpec,
)
from imgsvc_core.spec.store.parsing import parse_store, store_schema, unparse_store
from imgsvc_stores.access import MOST_KEY_CHARACTERS
from imgsvc_stores.errors import StoreRefused, StoreUnavailable
from imgsvc_stores.objects import StoredObject
from imgsvc_stores.pool import StorePool
from imgsvc_stores.store import Store, open_store, write

__all__ = [
    "ENDPOINTS",
    "MOST_KEY_CHARACTERS",
    "PROVIDERS",
    "Alibaba",
    "Aws",
    "DigitalOcean",
    "Google",
    "Ibm",
    "Microsoft",
    "Rackspace",
    "Store",
    "StorePool",
    "StoreRefused",
    "StoreSpec",
    "StoreUnavailable",
    "StoredObject",
    "open_store",
    "parse_store",
    "store_schema",
    "unparse_store",
    "write",
]
