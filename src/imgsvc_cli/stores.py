"""Results that go to an object store: ``imgsvc process --store FILE``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

import imgsvc_core as imgsvc
import imgsvc_stores as stores
from imgsvc_core._runtime.jsontext import SOMETHING, shown
from imgsvc_core.errors import invalid, os_reason
from imgsvc_core.sources import shown_url
from imgsvc_core.spec.declaring import NotTogether
from imgsvc_stores import ENDPOINTS

_NAME = re.compile(r"[^\x00-\x1f\x7f/\\\ud800-\udfff]+")
_VARIABLE = "IMGSVC_STORE_"


@attrs.frozen
class StoreTarget:
    """A store, and the keyfile that it names: for the command, the id of a keyfile is its path."""

    spec: stores.StoreSpec
    keyfiles: Mapping[str, Mapping[str, Any]] = attrs.field(repr=False)
    endpoints: Mapping[str, str]

    @classmethod
    def of(
        cls, document: Mapping[str, Any], environment: Mapping[str, str], endpoints: Sequence[str] = ()
    ) -> StoreTarget:
        """Return the target of a JSON object; credentials that it leaves out come from the environment.

        Each of the ``endpoints`` is ``NAME=URL``.

        Raises:
            SpecError: the store or its keyfile is wrong.
        """
        spec = stores.parse_store({**document, **_credentials(document, environment)})
        path = getattr(spec, "keyfile", None)
        keyfiles = {} if path is None else {path: _keyfile(path)}
        return cls(spec, keyfiles, dict(map(_endpoint, endpoints)))

    @property
    def is_folder(self) -> bool:
        """Return True if the store's path is a folder, in which each result has a name of its own."""
        return not self.spec.path or self.spec.path.endswith("/")

    def write(self, result: imgsvc.Result, stem: str) -> str:
        """Write a result to the store and return its URL.

        Raises:
            SpecError: no object can have the result's name.
        """
        assert result.data is not None
        format = imgsvc.FORMATS[result.output.format]
        name = f"{stem if self.is_folder else 'result'}{format.suffix}"
        if not _NAME.fullmatch(name):
            printable = name.encode("utf-8", "backslashreplace").decode()
            message = (
                f"An object cannot have the result's name {shown(printable)}: "
                "give its whole name as 'path' in the store document, or rename the source"
            )
            raise invalid("store.path", message)
        return stores.write(
            self.spec, result.data, name, format.media_type, keyfiles=self.keyfiles, endpoints=self.endpoints
        )


def _endpoint(text: str) -> tuple[str, str]:
    """Return the name and the URL of ``NAME=URL``."""
    name, _, url = text.partition("=")
    if name not in ENDPOINTS or not re.fullmatch("https?://[^/@][^@]*", url):
        expected = f"must be NAME=URL without credentials, with one of the names {', '.join(ENDPOINTS)}"
        got = SOMETHING if "@" in text else f"'{shown_url(text)}'"  # it may hold a password
        raise invalid("--store-endpoint", f"Option '--store-endpoint' {expected}, got {got}")
    return name, url


def _credentials(document: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, str]:
    """Return credentials from the environment for those that the document leaves out or has as null.

    If a provider has several kinds of credentials, as Google does, the kind of which the document has one is
    completed. If the document has no credentials, all credentials of the environment are taken. Two kinds are
    then an error.
    """
    provider = stores.PROVIDERS.get(str(document.get("provider")))
    if provider is None:
        return {}
    present = {name for name in provider.credentials if document.get(name) is not None}
    kinds = [kind for kind in _kinds(provider) if not present or present & set(kind)]
    missing = [name for kind in kinds for name in kind if name not in present]
    # Values from files may end with a newline.
    found = {name: environment.get(_VARIABLE + name.upper(), "").rstrip("\r\n") for name in missing}
    return {name: value for name, value in found.items() if value}


def _kinds(provider: type[stores.StoreSpec]) -> list[tuple[str, ...]]:
    """Return the credentials of a provider, grouped by kind."""
    exclusive = [rule for rule in provider.rules if isinstance(rule, NotTogether)]
    return [side for rule in exclusive for side in (rule.first, rule.second)] or [provider.credentials]


def _keyfile(path: str) -> dict[str, Any]:
    if path.lstrip().startswith("{"):  # never repeated: it holds a private key
        message = "Store 'keyfile' parameter must name a JSON file, got the text of one"
        raise invalid("store.keyfile", message)
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        reason = os_reason(error)
        message = f"Store 'keyfile' parameter must name a JSON file, got '{path}': {reason}"
        raise invalid("store.keyfile", message) from error
    if not isinstance(found, dict):
        raise invalid("store.keyfile", f"The keyfile '{path}' must be a JSON object")
    return found
