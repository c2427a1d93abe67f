"""Ceph's object gateway: a monitor, one object store in memory, and the gateway in front of them.

It checks signatures, bodies, access control lists and storage classes as large providers do.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from signal import SIGKILL

import attrs

from tests.stores.servers import cache
from tests.stores.servers.processes import running, wait_for_http, working_folder
from tests.support.servers import free_ports

_CLUSTER = "5d2f6f0e-2a63-4d0b-8a43-6d6f2f0a3c11"
_OSD = "a0c9b1de-7c55-4c1f-9b7a-3f6f1d6f5f22"

_SETTINGS = """
[global]
fsid = {cluster}
mon host = [v2:127.0.0.1:{v2},v1:127.0.0.1:{v1}]
public addr = 127.0.0.1
cluster addr = 127.0.0.1
keyring = {here}/keyring
mon warn on insecure global id reclaim allowed = false
mon allow pool size one = true
paxos propose interval = 0.05
mon max pg per osd = 5000
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd crush chooseleaf type = 0
osd max object name len = 1024
run dir = {here}
admin socket = {here}/$name.sock
pid file = {here}/$name.pid
log file = {here}/$name.log
mon cluster log file = {here}/cluster.log
ms bind ipv6 = false
osd class dir = {libraries}/rados-classes
erasure code dir = {libraries}/ceph/erasure-code
plugin dir = {libraries}/ceph
[mon.a]
mon data = {here}/mon
[osd.0]
osd data = {here}/osd
osd objectstore = memstore
memstore device bytes = 2147483648
[client.rgw]
rgw data = {here}/rgw
rgw frontends = beast endpoint=127.0.0.1:{http}
rgw enable apis = s3, admin
rgw dns name = localhost
rgw crypt require ssl = false
"""


@attrs.frozen
class Gateway:
    """A running gateway."""

    url: str
    here: Path
    environment: dict[str, str] = attrs.field(repr=False)

    def add_user(self, name: str, key: str, secret: str) -> None:
        """A user with a key pair, who owns no buckets yet."""
        arguments = ["user", "create", f"--uid={name}", f"--display-name={name}"]
        self._admin(*arguments, f"--access-key={key}", f"--secret-key={secret}")

    def add_storage_class(self, name: str) -> None:
        """A storage class that objects may be put into."""
        placement = ["--rgw-zonegroup=default", "--placement-id=default-placement"]
        self._admin("zonegroup", "placement", "add", *placement, f"--storage-class={name}")
        placement[0] = "--rgw-zone=default"
        pool = "--data-pool=default.rgw.buckets.data"
        self._admin("zone", "placement", "add", *placement, f"--storage-class={name}", pool)

    def _admin(self, *arguments: str) -> None:
        _run(["radosgw-admin", *arguments], self.environment)


@contextlib.contextmanager
def gateway(storage_classes: tuple[str, ...] = ()) -> Iterator[Gateway]:
    """A gateway with these storage classes besides STANDARD, and without users."""
    root = cache.folder("ceph")
    libraries = root / "usr/lib/x86_64-linux-gnu"
    with working_folder() as here, free_ports(3) as (v2, v1, http), contextlib.ExitStack() as stack:
        settings = here / "ceph.conf"
        text = _SETTINGS.format(cluster=_CLUSTER, here=here, libraries=libraries, v1=v1, v2=v2, http=http)
        settings.write_text(text)
        environment = _environment(root, libraries, settings)

        def serve(*command: str) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
            """Run one of the servers. Killed in the end, as they would write down what nobody reads."""
            return running([*command, "-f"], here / f"{command[0]}.out", environment, end=SIGKILL)

        _make_monitor(here, environment, v1, v2)
        stack.enter_context(serve("ceph-mon", "-i", "a"))
        _run(["ceph", "--connect-timeout", "30", "osd", "new", _OSD, "0"], environment)
        _run(["ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", _OSD], environment)
        stack.enter_context(serve("ceph-osd", "-i", "0"))
        _run(["ceph", "osd", "crush", "add", "osd.0", "1", "root=default", "host=here"], environment)
        started = Gateway(f"http://127.0.0.1:{http}", here, environment)
        _run(["radosgw-admin", "user", "list"], environment)  # makes the zone that the next lines change
        for name in storage_classes:
            started.add_storage_class(name)
        process = stack.enter_context(serve("radosgw", "-n", "client.rgw"))
        wait_for_http(started.url, process, here / "radosgw.out")
        yield started


def _environment(root: Path, libraries: Path, settings: Path) -> dict[str, str]:
    return {
        **os.environ,
        "CEPH_CONF": str(settings),
        "LD_LIBRARY_PATH": f"{libraries}:{libraries}/ceph:{root}/usr/lib:{root}/lib/x86_64-linux-gnu",
        "PATH": f"{root}/usr/bin:/usr/bin:/bin",
        "PYTHONPATH": f"{root}/usr/lib/python3/dist-packages",
    }


def _make_monitor(here: Path, environment: dict[str, str], v1: int, v2: int) -> None:
    keyring, map_ = here / "keyring", here / "monmap"
    _run(
        ["ceph-authtool", "--create-keyring", keyring, "--gen-key", "-n", "mon.", "--cap", "mon", "allow *"],
        environment,
    )
    for name in ("client.admin", "osd.0", "client.rgw"):
        capabilities = [part for kind in ("mon", "osd", "mgr") for part in ("--cap", kind, "allow *")]
        _run(["ceph-authtool", keyring, "--gen-key", "-n", name, *capabilities], environment)
    addresses = f"[v2:127.0.0.1:{v2},v1:127.0.0.1:{v1}]"
    _run(["monmaptool", "--create", "--addv", "a", addresses, "--fsid", _CLUSTER, map_], environment)
    for name in ("mon", "osd", "rgw"):
        (here / name).mkdir()
    (here / "rgw/keyring").write_bytes(keyring.read_bytes())
    _run(["ceph-mon", "--mkfs", "-i", "a", "--monmap", map_, "--keyring", keyring], environment)


def _run(command: list[str | Path] | list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(
        [str(part) for part in command], env=environment, capture_output=True, text=True, timeout=120
    )
    if done.returncode:
        raise AssertionError(f"{command} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
