"""The server of one provider, in a process of its own: what it says on its output is how to write to it.

``python -m benchmarks.store_servers aws`` runs until its input ends.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import attrs

BUCKET = "imgsvc-pictures"


@attrs.frozen
class Place:
    """Where to write, as the project is told it, and what a raw client needs besides."""

    store: dict[str, Any]
    endpoints: dict[str, str]
    keyfiles: dict[str, Any] = attrs.field(factory=dict)
    raw: dict[str, str] = attrs.field(factory=dict)


@contextlib.contextmanager
def aws() -> Iterator[Place]:
    """Ceph's object gateway."""
    from tests.stores.s3_server import s3_server

    with s3_server() as server:
        yield Place(
            {
                "provider": "aws", "key": server.key, "secret": server.secret, "bucket": BUCKET,
                "region": "us-east-1",
            },
            {"aws": server.url},
        )  # fmt: skip


@contextlib.contextmanager
def ibm() -> Iterator[Place]:
    """Ceph's object gateway behind a front that takes tokens."""
    from tests.stores.s3_server import s3_server
    from tests.stores.servers.ibm import front

    with s3_server() as server, front(server.url, server.key, server.secret, api_key="api-key") as running:
        form = {"grant_type": "urn:ibm:params:oauth:grant-type:apikey", "apikey": "api-key"}
        token = _posted(f"{running.url}/identity/token", form)["access_token"]
        yield Place(
            {"provider": "ibm", "key": "api-key", "bucket": BUCKET, "region": "eu-de"},
            {"ibm": running.url, "ibm_token": running.url},
            raw={"url": f"{running.url}/{BUCKET}", "token": token},
        )


@contextlib.contextmanager
def google() -> Iterator[Place]:
    """An emulator behind a front that verifies signed claims."""
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
    from google.auth import crypt, jwt
    from tests.stores.servers.google import front

    key, email = rsa.generate_private_key(65_537, 2048), "writer@imgsvc.iam.gserviceaccount.com"
    keyfile = {
        "client_email": email,
        "private_key": key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(),
    }
    with front({email: key.public_key()}, BUCKET, "imgsvc-of-somebody-else") as running:
        scope = "https://www.googleapis.com/auth/devstorage.full_control"
        signer = crypt.RSASigner.from_service_account_info(keyfile)
        now = int(time.time())
        audience = "https://oauth2.googleapis.com/token"
        claims = {"iss": email, "scope": scope, "aud": audience, "iat": now, "exp": now + 3600}
        grant = "urn:ietf:params:oauth:grant-type:jwt-bearer"
        form = {"grant_type": grant, "assertion": jwt.encode(signer, claims).decode()}
        yield Place(
            {"provider": "google", "keyfile": "ours", "bucket": BUCKET},
            {"google": running.url, "google_token": running.url},
            {"ours": keyfile},
            {
                "url": f"{running.url}/upload/storage/v1/b/{BUCKET}/o",
                "token": _posted(f"{running.url}/token", form)["access_token"],
            },
        )


@contextlib.contextmanager
def microsoft() -> Iterator[Place]:
    """Azurite."""
    from azure.storage.blob import BlobServiceClient
    from tests.stores.servers.azurite import azurite

    account, key = "imgsvcpictures", base64.b64encode(b"key-of-the-account").decode()
    with azurite({account: key}) as url:
        address = f"{url}/{account}"
        with BlobServiceClient(address, credential={"account_name": account, "account_key": key}) as client:
            client.create_container(BUCKET)
        yield Place(
            {"provider": "microsoft", "account": account, "key": key, "container": BUCKET},
            {"microsoft": address},
        )


@contextlib.contextmanager
def alibaba() -> Iterator[Place]:
    """A stand-in that verifies signatures and bodies."""
    from tests.stores.servers import oss

    keys, region = {"LTAIKEYOFTHEUSER": "secret-of-the-user"}, "eu-central-1"
    with oss.server(keys=keys, buckets={BUCKET: True}, region=region) as running:
        ((key, secret),) = keys.items()
        yield Place(
            {"provider": "alibaba", "key": key, "secret": secret, "bucket": BUCKET, "region": region},
            {"alibaba": running.url},
        )


@contextlib.contextmanager
def rackspace() -> Iterator[Place]:
    """OpenStack's Swift behind a front for identity and CDN."""
    from tests.stores.servers.rackspace import front
    from tests.stores.servers.swift import swift

    account, user, key = "imgsvc", "owner", "api-key"
    with swift({(account, user): key}) as url, front(url, account, enabled={BUCKET}) as running:
        login = {"X-Auth-User": f"{account}:{user}", "X-Auth-Key": key}
        request = urllib.request.Request(f"{url}/auth/v1.0", headers=login)
        with urllib.request.urlopen(request, timeout=20) as answer:
            token = answer.headers["X-Auth-Token"]
        objects = f"{running.url}/swift/v1/AUTH_{account}/{BUCKET}"
        made = urllib.request.Request(objects, method="PUT", data=b"", headers={"X-Auth-Token": token})
        urllib.request.urlopen(made, timeout=20).close()
        yield Place(
            {"provider": "rackspace", "username": user, "key": key, "container": BUCKET, "region": "iad"},
            {"rackspace": running.url},
            raw={"url": objects, "token": token},
        )


PROVIDERS: dict[str, Callable[[], contextlib.AbstractContextManager[Place]]] = {
    server.__name__: server for server in (aws, ibm, google, microsoft, alibaba, rackspace)
}


def _posted(url: str, form: dict[str, str]) -> dict[str, str]:
    data = urllib.parse.urlencode(form).encode()
    with urllib.request.urlopen(url, data, timeout=20) as answer:
        found: dict[str, str] = json.load(answer)
        return found


def main() -> None:
    """Serve, and tell where; behind whoever measures with a priority of its own, and before all others."""
    priority = os.sched_getparam(0).sched_priority
    if priority > 1:
        os.sched_setparam(0, os.sched_param(priority - 1))
    with PROVIDERS[sys.argv[1]]() as place:
        print(json.dumps(attrs.asdict(place)), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
