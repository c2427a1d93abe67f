"""What every store must do, whichever provider it is. Each provider's tests inherit from `StoreContract`."""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

import imgsvc_stores as stores
from imgsvc_core.spec import Param, params
from imgsvc_core.spec.store.parameter_types import Headers

REFUSAL_SECONDS = 10

HEADERS = {
    "Expires": "Thu, 31 Dec 2037 23:55:55 GMT",
    "Cache-Control": "public, max-age=86400",
    "Content-Type": "image/x-contract",
    "Content-Encoding": "gzip",
    "Content-Language": "de-CH",
    "Content-Disposition": 'attachment; filename="cat & dog.png"',
}

PATHS = {
    "plain": "pets/cat.webp",
    "spaces": "all my pets/a cat.webp",
    "reserved": "a+b&c=d;e,f@g:h!$'()*/?x=1#top.webp",
    "percent": "100%/%41%2F.webp",
    "unicode": "Tiere/Kätzchen/\u732b\U0001f408.webp",
    "leading slash": "/pets/cat.webp",
    "many slashes": "///pets/cat.webp",
    "no suffix": "cat",
    "tilde": "~home/~cat.webp",
}


@attrs.frozen(kw_only=True)
class Kept:
    """What a server keeps of an object, as its owner reads it. Names of metadata are in small letters."""

    data: bytes
    content_type: str
    headers: Mapping[str, str] = attrs.field(factory=dict)
    metadata: Mapping[str, str] = attrs.field(factory=dict)
    tags: Mapping[str, str] = attrs.field(factory=dict)
    storage_class: str = "standard"


@attrs.frozen(kw_only=True)
class Destination:
    """A place at a server for tests.

    Attributes:
        store: the JSON object of a store that works.
        endpoints, keyfiles: what `stores.open_store` is given besides.
        read: the object of a name, or nothing where there is none; not through the project's own code.
        refusals: changes to ``store`` that the provider refuses, by what is wrong with them, each with the
            provider's codes for it, of which one must be given.
        acls: access control lists, and whether strangers can read the object then.
        public: whether strangers can read objects where no list can be named.
        classes: storage classes that the server has.
        secrets: what nobody may see.
        unread_headers: allowed headers that the server of the tests does not keep.
        large: size of an object that is sent in parts.
        large_tags: whether the server of the tests keeps the tags of such objects.
    """

    store: dict[str, Any]
    endpoints: dict[str, str]
    read: Callable[[str], Kept | None]
    refusals: Mapping[str, tuple[dict[str, Any], tuple[str, ...]]]
    secrets: tuple[str, ...]
    keyfiles: dict[str, Any] = attrs.field(factory=dict)
    acls: Mapping[str, bool] = attrs.field(factory=dict)
    public: bool = True
    classes: tuple[str, ...] = ()
    unread_headers: frozenset[str] = frozenset()
    large: int = 12_000_000
    large_tags: bool = True

    def put(self, data: bytes | Path = b"picture", name: str = "cat.webp", **changes: Any) -> str:
        """Store an object with changes to the store's parameters; its URL."""
        return stores.write(
            {**self.store, **changes},
            data,
            name,
            "image/webp",
            keyfiles=self.keyfiles,
            endpoints=self.endpoints,
            seconds=30,
        )

    def kept(self, name: str) -> Kept:
        """The object of a name, which must be there."""
        found = self.read(name)
        assert found is not None, f"there is no object named {name!r}"
        return found

    def declared(self, name: str) -> Param:
        """A parameter of this kind of store; the test is skipped where the interface gives it none."""
        declared = params(type(stores.parse_store(self.store)))
        if name not in declared:
            pytest.skip(f"the interface gives this provider no {name}")
        return declared[name]


class StoreContract:
    """The tests; a subclass has a fixture ``destination``."""

    def test_an_object_has_its_bytes_and_content_type(self, destination: Destination) -> None:
        data = bytes(range(256)) * 40
        destination.put(data, path="bytes.webp")
        kept = destination.kept("bytes.webp")
        assert (kept.data, kept.content_type) == (data, "image/webp")

    def test_the_url_given_back_is_that_of_the_object(self, destination: Destination) -> None:
        url = destination.put(b"from a url", path="a folder/from a url.webp")
        if destination.acls or destination.public:
            assert anonymous(url) == b"from a url"
        assert url.endswith("/a%20folder/from%20a%20url.webp")

    def test_a_file_is_stored_like_bytes(self, destination: Destination, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"in a file")
        destination.put(tmp_path / "file", path="file.webp")
        assert destination.kept("file.webp").data == b"in a file"

    def test_an_object_replaces_the_one_of_its_name(self, destination: Destination) -> None:
        destination.put(b"first", path="twice.webp")
        destination.put(b"second", path="twice.webp")
        assert destination.kept("twice.webp").data == b"second"

    def test_the_root_is_the_default_path(self, destination: Destination) -> None:
        destination.put(b"root", "in the root.webp")
        assert destination.kept("in the root.webp").data == b"root"

    def test_a_path_with_a_slash_at_its_end_is_a_folder(self, destination: Destination) -> None:
        destination.put(b"inside", "result.webp", path="folder/")
        assert destination.kept("folder/result.webp").data == b"inside"

    @pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
    def test_paths_are_kept_to_the_letter(self, destination: Destination, path: str) -> None:
        url = destination.put(path.encode(), path=path)
        assert destination.kept(path.lstrip("/")).data == path.encode()
        if destination.acls or destination.public:
            assert anonymous(url) == path.encode()

    def test_every_allowed_header_is_kept(self, destination: Destination) -> None:
        kind = destination.declared("headers").kind
        assert isinstance(kind, Headers)
        headers = {name: HEADERS[name] for name in kind.allowed}
        destination.put(b"headers", path="headers.webp", headers=headers)
        kept = destination.kept("headers.webp")
        expected = {name: value for name, value in headers.items() if name not in destination.unread_headers}
        found = {"content-type": kept.content_type}
        found |= {name.lower(): value for name, value in kept.headers.items()}
        assert {name: found.get(name.lower()) for name in expected} == expected

    def test_metadata_is_kept(self, destination: Destination) -> None:
        destination.declared("metadata")
        metadata = {"camera": "A 1; B=2", "author": "https://example.org/?a=b&c", "number4": "0"}
        destination.put(b"metadata", path="metadata.webp", metadata=metadata)
        assert destination.kept("metadata.webp").metadata == metadata

    def test_strangers_read_what_the_access_control_list_lets_them(self, destination: Destination) -> None:
        destination.declared("acl")
        for acl, readable in {None: True, **destination.acls}.items():
            changes = {} if acl is None else {"acl": acl}
            url = destination.put(b"acl", path=f"acl-{acl}.webp", **changes)
            assert (anonymous(url) == b"acl") is readable, acl
            assert destination.kept(f"acl-{acl}.webp").data == b"acl"

    def test_storage_classes_are_kept(self, destination: Destination) -> None:
        destination.declared("class")
        for name in ("standard", *destination.classes):
            destination.put(b"class", path=f"{name}.webp", **{"class": name})
            assert destination.kept(f"{name}.webp").storage_class == name

    def test_tags_are_kept(self, destination: Destination) -> None:
        destination.declared("tags")
        tags = {"project": "cats + dogs", "a/b": "c=d", "größe": "", "e": "f g"}
        destination.put(b"tags", path="tags.webp", tags=tags)
        assert destination.kept("tags.webp").tags == tags

    def test_a_large_object_is_stored_with_all_that_belongs_to_it(self, destination: Destination) -> None:
        data = bytes(range(251)) * (destination.large // 251 + 1)
        changes: dict[str, Any] = {}
        declared = params(type(stores.parse_store(destination.store)))
        if "metadata" in declared:
            changes["metadata"] = {"size": "large"}
        if "headers" in declared:
            changes["headers"] = {"Cache-Control": "no-store"}
        if "tags" in declared and destination.large_tags:
            changes["tags"] = {"size": "large"}
        url = destination.put(data, path="large.webp", **changes)
        kept = destination.kept("large.webp")
        assert kept.data == data
        assert kept.content_type == "image/webp"
        assert dict(kept.metadata) == changes.get("metadata", {})
        assert dict(kept.tags) == changes.get("tags", {})
        if "headers" in changes:
            assert kept.headers["Cache-Control"] == "no-store"
        if destination.acls or destination.public:
            assert anonymous(url) == data

    def test_refusals_come_soon_with_the_providers_code_and_leave_nothing(
        self, destination: Destination
    ) -> None:
        assert {"secret", "bucket"} <= destination.refusals.keys()
        for what, (changes, codes) in destination.refusals.items():
            started = time.monotonic()
            with pytest.raises(stores.StoreRefused) as caught:
                destination.put(b"refused", path=f"refused-{what}.webp", **changes)
            assert time.monotonic() - started < REFUSAL_SECONDS, what
            assert caught.value.code in codes, what
            assert caught.value.code in caught.value.message
            assert destination.read(f"refused-{what}.webp") is None, what

    def test_secrets_are_seen_nowhere(
        self, destination: Destination, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
    ) -> None:
        caplog.set_level(logging.DEBUG)
        shown = []
        destination.put(b"quiet", path="quiet.webp")
        for changes, _ in destination.refusals.values():
            with pytest.raises(stores.StoreRefused) as caught:
                destination.put(b"quiet", path="quiet.webp", **changes)
            shown += traceback.format_exception(caught.value)
            shown += [repr(caught.value), str(caught.value), repr(vars(caught.value))]
        spec = stores.parse_store(destination.store)
        opened = stores.open_store(spec, keyfiles=destination.keyfiles)
        shown += [repr(spec), str(spec), repr(opened), *capfd.readouterr(), caplog.text]
        shown += [f"{record.msg} {record.args} {record.exc_info}" for record in caplog.records]
        for secret in destination.secrets:
            assert not [text for text in shown if secret in text]

    def test_many_objects_are_stored_at_once_through_one_session(self, destination: Destination) -> None:
        async def run() -> None:
            async with stores.StorePool(endpoints=destination.endpoints) as pool:

                async def put(number: int) -> str:
                    store = stores.open_store(
                        {**destination.store, "path": f"many/{number}.webp"},
                        keyfiles=destination.keyfiles,
                        pool=pool,
                    )
                    return await store.put(stores.StoredObject(b"%d" % number, "x.webp", "image/webp"))

                assert len(set(await asyncio.gather(*map(put, range(20))))) == 20
                assert pool.idle == 1
            assert pool.idle == 0

        asyncio.run(run())
        assert destination.kept("many/7.webp").data == b"7"

    @pytest.mark.parametrize("seconds", [0.01, 0.1])
    def test_what_is_given_up_ends_at_once(self, destination: Destination, seconds: float) -> None:
        async def run() -> float:
            store = stores.open_store(
                destination.store, keyfiles=destination.keyfiles, endpoints=destination.endpoints
            )
            async with store:
                await store.put(stores.StoredObject(b"small", "small.webp", "image/webp"))
                others = asyncio.all_tasks()
                item = stores.StoredObject(bytes(4 * destination.large), "given up.webp", "image/webp")
                task = asyncio.create_task(store.put(item))
                await asyncio.sleep(seconds)
                started = time.monotonic()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert asyncio.all_tasks() == others, "something runs on"
                return time.monotonic() - started

        assert asyncio.run(run()) < 6
        assert destination.read("given up.webp") is None


def anonymous(url: str) -> bytes | None:
    """What a stranger gets from a URL; nothing where it is refused."""
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            found: bytes = response.read()
            return found
    except urllib.error.HTTPError as error:
        if error.code not in (401, 403, 404, 409):
            raise
        return None
