"""OpenStack's Swift: account, container and object servers and their proxy, over plain folders.

Users are Swift's own: their keys and tokens are checked by it.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.stores.servers import cache
from tests.stores.servers.processes import running, wait_for_http, working_folder
from tests.support.servers import free_ports

_COMMON = """
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
workers = 0
user = {user}
swift_dir = {here}
devices = {here}
mount_check = false
disable_fallocate = true
recon_cache_path = {here}/recon
log_address = {here}/nothing
"""

_BACKEND = """
[pipeline:main]
pipeline = {name}-server
[app:{name}-server]
use = egg:swift#{name}
"""

_PROXY = """
[pipeline:main]
pipeline = catch_errors gatekeeper cache tempauth proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:{memcached}
[filter:tempauth]
use = egg:swift#tempauth
"""

_HASHES = """
[swift-hash]
swift_hash_path_suffix = suffix
swift_hash_path_prefix = prefix
[storage-policy:0]
name = gold
default = yes
"""


@contextlib.contextmanager
def swift(users: Mapping[tuple[str, str], str]) -> Iterator[str]:
    """The address of a cluster of one node; ``users`` are keys of users in accounts that they own."""
    root = cache.folder("swift")
    with (
        working_folder() as here,
        free_ports(5) as (proxy, memcached, *ports),
        contextlib.ExitStack() as stack,
    ):
        stack.enter_context(_memcached(root, here, memcached))
        (here / "swift.conf").write_text(_HASHES)
        (here / "d1").mkdir()
        (here / "recon").mkdir()
        for name, port in zip(("account", "container", "object"), ports, strict=True):
            _make_ring(root, here, name, port)
            stack.enter_context(_server(root, here, name, port, _BACKEND.format(name=name)))
        named = "".join(f"user_{account}_{user} = {key} .admin\n" for (account, user), key in users.items())
        process = stack.enter_context(
            _server(root, here, "proxy", proxy, _PROXY.format(memcached=memcached) + named)
        )
        url = f"http://127.0.0.1:{proxy}"
        wait_for_http(url, process, here / "proxy.out")
        yield url


def _server(
    root: Path, here: Path, name: str, port: int, settings: str
) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
    file = here / f"{name}-server.conf"
    file.write_text(_COMMON.format(port=port, here=here, user=getpass.getuser()) + settings)
    program = root / f"bin/swift-{name}-server"
    return running([root / "bin/python", program, file, "-v"], here / f"{name}.out")


def _make_ring(root: Path, here: Path, name: str, port: int) -> None:
    builder = [str(root / "bin/python"), str(root / "bin/swift-ring-builder"), f"{name}.builder"]
    for step in (
        ["create", "2", "1", "0"],
        ["add", f"r1z1-127.0.0.1:{port}/d1", "1"],
        ["rebalance"],
    ):
        done = subprocess.run([*builder, *step], cwd=here, capture_output=True, text=True, timeout=60)
        assert done.returncode < 2, done.stdout + done.stderr  # one is a warning


@contextlib.contextmanager
def _memcached(root: Path, here: Path, port: int) -> Iterator[None]:
    libraries = root / "debian/usr/lib/x86_64-linux-gnu"
    command = [root / "debian/usr/bin/memcached", "-l", "127.0.0.1", "-p", str(port), "-m", "32"]
    if os.geteuid() == 0:
        command += ["-u", "root"]
    with running(command, here / "memcached.out", {**os.environ, "LD_LIBRARY_PATH": str(libraries)}):
        yield
