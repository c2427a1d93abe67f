"""The front of Google's storage: tokens for signed claims, rights for objects, and an emulator behind it.

The emulator keeps the objects. Signatures, tokens, rights and access control lists are checked here.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import gzip
import json
import secrets
import time
from collections.abc import Iterator
from urllib.parse import quote

import attrs
from aiohttp import web
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256

from tests.stores.servers import cache
from tests.stores.servers.applications import forwarded, serving
from tests.stores.servers.processes import running, wait_for_http, working_folder
from tests.support.servers import free_port

_AUDIENCE = "https://oauth2.googleapis.com/token"
_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_LISTS = (
    "authenticatedRead",
    "bucketOwnerFullControl",
    "bucketOwnerRead",
    "private",
    "projectPrivate",
    "publicRead",
)
_CLOCK = "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe."


class Denied(Exception):
    """Claims that give no token."""


@attrs.define
class Front:
    """A running front: service accounts with their public keys, and the bucket that they may write to.

    ``token_seconds`` is how long it takes to give a token.
    """

    emulator: str
    accounts: dict[str, RSAPublicKey]
    bucket: str
    foreign_bucket: str
    url: str = ""
    token_seconds: float = 0
    tokens: dict[str, float] = attrs.field(factory=dict, repr=False)
    lists: dict[str, str] = attrs.field(factory=dict)

    def routes(self, application: web.Application) -> None:
        application.router.add_post("/token", self.token)
        application.router.add_post("/upload/storage/v1/b/{bucket}/o", self.upload)
        application.router.add_get("/storage/v1/b/{bucket}/o", self.read)
        application.router.add_get("/storage/v1/b/{bucket}/o/{name:.*}", self.read)
        application.router.add_get("/download/storage/v1/b/{bucket}/o/{name:.*}", self.read)
        application.router.add_get("/{bucket}/{name:.*}", self.public)

    async def token(self, request: web.Request) -> web.Response:
        form = await request.post()
        await asyncio.sleep(self.token_seconds)
        if form.get("grant_type") != _GRANT:
            return web.json_response({"error": "unsupported_grant_type"}, status=400)
        try:
            self._check(str(form["assertion"]))
        except Denied as denied:
            refusal = {"error": "invalid_grant", "error_description": str(denied)}
            return web.json_response(refusal, status=400)
        token = "ya29." + secrets.token_urlsafe(30)
        self.tokens[token] = time.time() + 3600
        return web.json_response({"access_token": token, "expires_in": 3599, "token_type": "Bearer"})

    def _check(self, assertion: str) -> None:
        try:
            head, body, signature = assertion.split(".")
            header, claims = json.loads(_decoded(head)), json.loads(_decoded(body))
            key = self.accounts[claims["iss"]]
        except (KeyError, TypeError, ValueError, binascii.Error):
            raise Denied("Invalid grant: account not found") from None
        try:
            key.verify(_decoded(signature), f"{head}.{body}".encode(), PKCS1v15(), SHA256())
        except InvalidSignature:
            raise Denied("Invalid JWT Signature.") from None
        now = time.time()
        if not now - 300 < claims["exp"] <= claims["iat"] + 3600 or claims["iat"] > now + 300:
            raise Denied(_CLOCK)
        if header["alg"] != "RS256" or claims["aud"] != _AUDIENCE:
            raise Denied("Invalid JWT: Failed audience check.")
        if "https://www.googleapis.com/auth/devstorage.full_control" not in claims["scope"].split():
            raise Denied("Invalid OAuth scope or ID token audience provided.")

    def _refused(self, request: web.Request) -> web.Response | None:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if self.tokens.get(token, 0) < time.time():
            return _error(401, "authError", "Invalid Credentials")
        bucket = request.match_info["bucket"]
        if bucket == self.foreign_bucket:
            return _error(403, "forbidden", "The account does not have access to the objects of the bucket.")
        if bucket != self.bucket:
            return _error(404, "notFound", "The specified bucket does not exist.")
        return None

    async def upload(self, request: web.Request) -> web.Response:
        body = await request.read()
        predefined = request.query.get("predefinedAcl", "projectPrivate")
        if refused := self._refused(request):
            return refused
        if predefined not in _LISTS:
            return _error(400, "invalid", "Invalid argument.")
        sent = {"Content-Type": request.headers["Content-Type"]}
        answer = await forwarded("POST", f"{self.emulator}{request.raw_path}", sent, body)
        if answer.status != 200:
            return _error(answer.status, "invalid", "The emulator refuses it.")
        assert isinstance(answer.body, bytes)
        self.lists[json.loads(answer.body)["name"]] = predefined
        return answer

    async def read(self, request: web.Request) -> web.Response:
        """An object or its facts, for those who have a token."""
        if refused := self._refused(request):
            return refused
        address = f"{self.emulator}{request.raw_path}"
        sent = {"Range": request.headers["Range"]} if "Range" in request.headers else {}
        if request.query.get("alt") != "media":
            return await forwarded("GET", address, sent)
        facts = await forwarded("GET", self._facts_address(request), {})
        encoding = json.loads(facts.body).get("contentEncoding") if facts.status == 200 else None
        if encoding == "gzip" and "gzip" not in request.headers.get("Accept-Encoding", ""):
            # Google decodes for who does not accept gzip, and ignores ranges then.
            whole = await forwarded("GET", address, {})
            return web.Response(body=gzip.decompress(whole.body))
        answer = await forwarded("GET", address, sent)
        if encoding:
            answer.headers["Content-Encoding"] = encoding
        return answer

    def _facts_address(self, request: web.Request) -> str:
        return object_address(self.emulator, request.match_info["bucket"], request.match_info["name"])

    async def public(self, request: web.Request) -> web.Response:
        bucket, name = request.match_info["bucket"], request.match_info["name"]
        if bucket != self.bucket or self.lists.get(name) != "publicRead":
            return web.Response(status=403, text="<Error><Code>AccessDenied</Code></Error>")
        return await forwarded("GET", f"{object_address(self.emulator, bucket, name)}?alt=media", {})


def object_address(emulator: str, bucket: str, name: str) -> str:
    """Where the emulator has what is known of an object."""
    return f"{emulator}/storage/v1/b/{bucket}/o/{quote(name, safe='')}"


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def _error(status: int, reason: str, message: str) -> web.Response:
    detail = {"message": message, "domain": "global", "reason": reason}
    error = {"code": status, "message": message, "errors": [detail]}
    return web.json_response({"error": error}, status=status)


@contextlib.contextmanager
def front(accounts: dict[str, RSAPublicKey], bucket: str, foreign_bucket: str) -> Iterator[Front]:
    """An emulator with a bucket, and its front."""
    root = cache.folder("gcs")
    with working_folder() as here, free_port() as port:
        log = here / "gcs.log"
        program = [root / "bin/python", root / "bin/gcp-storage-emulator", "start", "--in-memory"]
        options = ["--host", "127.0.0.1", "--port", str(port), "--default-bucket", bucket]
        with running([*program, *options], log) as process:
            emulator = f"http://127.0.0.1:{port}"
            wait_for_http(emulator, process, log)
            made = Front(emulator, accounts, bucket, foreign_bucket)
            with serving(made.routes) as made.url:
                yield made
