"""The process that forks workers, as a pool sees it.

Little is imported here, so that a command can begin this process first. It loads the library on another core
while the command loads the rest.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import attrs

from imgsvc_core._runtime.libvips import thread_names
from imgsvc_core._runtime.worker_messages import FAILED, FORK, FORK_SERVER, READY, REFUSED
from imgsvc_core._runtime.worker_setup import NOT_BEGUN
from imgsvc_core.errors import MachineFailed

_REFUSED = "The machine starts no more processes for pictures, which are not at fault. Try again later."
_START_SECONDS = 60.0
_MOST_TOLD = 4096  # bytes of a message

_forks_here = False


@contextlib.contextmanager
def forking_this_process() -> Iterator[None]:
    """Let fork servers for a few pictures begin as forks of this process, which has loaded the library.

    Only a command of ours does so: the memory of other programs is no business of a decoder's.
    """
    global _forks_here
    _forks_here = True
    try:
        yield
    finally:
        _forks_here = False


@attrs.define(eq=False)
class Child:
    """A process that this one has forked, used as `subprocess.Popen`."""

    pid: int
    returncode: int | None = attrs.field(default=None, init=False)

    def kill(self) -> None:
        """Kill it, unless it was waited for."""
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Wait until it has ended. Return its exit code, as `subprocess.Popen.wait` does."""
        if self.returncode is None:
            try:
                self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            except ChildProcessError:  # SIGCHLD is ignored
                self.returncode = 0
        return self.returncode


def _interpreter() -> str:
    """Return the path of Python: in programs that embed it, such as uWSGI, `sys.executable` is the program.

    Raises:
        RuntimeError: the program is frozen, as by PyInstaller. Started again, it would run from its start.
    """
    if not hasattr(sys, "frozen"):
        own = Path(sys.exec_prefix, "bin", "python{}.{}".format(*sys.version_info))
        for python in (Path(sys.executable), own):
            if "python" in python.name and python.exists():
                return str(python)
    raise RuntimeError(
        "Worker processes need a Python interpreter, and this program has none: call `process`, or "
        "`aprocess` with `isolated=False`, in this process."
    )


@attrs.frozen(eq=False)
class Forkserver:
    """A process that forks a worker for each socket that it is sent, or another such process.

    That other one has no ``process`` here: it ends when its socket is closed.
    """

    control: socket.socket
    process: subprocess.Popen[bytes] | Child | None

    @classmethod
    def begin(
        cls,
        memory_bytes: int | None,
        scratch: Path | None = None,
        *,
        umask: int = -1,
        modules: Sequence[str] = (),
        preloads: bool = True,
    ) -> Forkserver:
        """Start the process, without waiting until it can fork workers.

        Args:
            memory_bytes: the most data that a worker may hold.
            umask: the file mode mask of workers; when -1, the mask of this process.
            modules: the modules of tasks, which it loads beside the library.
            preloads: whether it loads the code of all formats ahead, which pays from some dozens of pictures
                on.
            scratch: the folder for temporary files of workers; by default the folder of the system.

        Raises:
            MachineFailed: the machine refuses another process.
            RuntimeError: the program is frozen, so that there is no Python to start.
        """
        command = [_interpreter(), "-m", "imgsvc_core._runtime.worker_process"]
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with theirs:
            try:
                if _forks_here and not preloads and len(thread_names()) == 1:
                    if (pid := os.fork()) == 0:
                        if umask != -1:
                            os.umask(umask)
                        if scratch:
                            os.environ["TMPDIR"] = str(scratch)
                        _become_forkserver(theirs, memory_bytes, modules)
                    return cls(ours, Child(pid))
                process = subprocess.Popen(
                    [*command, str(theirs.fileno()), str(memory_bytes or 0), str(int(preloads)), *modules],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    umask=umask,
                    env=environment | ({"TMPDIR": str(scratch)} if scratch else {}),
                )
            except BlockingIOError as error:
                ours.close()
                raise MachineFailed(_REFUSED) from error
        return cls(ours, process)

    def fork_server(self) -> Forkserver:
        """Fork another server, without waiting until it can fork workers. It shares the memory of this one.

        Raises:
            ConnectionError: this process ended.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        with theirs:
            try:
                socket.send_fds(self.control, [FORK_SERVER], [theirs.fileno()])
            except BaseException:
                ours.close()
                raise
        return Forkserver(ours, None)

    async def ready(self) -> None:
        """Wait until the process can fork.

        Raises:
            MachineFailed: it ended before.
            ImportError: it cannot import a module.
        """
        try:
            async with asyncio.timeout(_START_SECONDS):
                ready = await asyncio.get_running_loop().sock_recv(self.control, _MOST_TOLD)
        except ConnectionError:  # it left what it was sent unread
            ready = b""
        except BaseException:
            self.close()
            raise
        if not ready:
            self.close()
            raise MachineFailed(NOT_BEGUN)
        if ready.startswith(FAILED):
            self.close()
            module, _, reason = ready.removeprefix(FAILED).decode(errors="replace").partition("\0")
            raise ImportError(f"Module '{module}' cannot be imported in worker processes: {reason}")

    async def fork(self) -> tuple[socket.socket, int, int]:
        """Return the connection to a new worker, and the file descriptors of its process and of its notes.

        Raises:
            ConnectionError: this process ended, or the worker did.
            MachineFailed: the machine refuses another process.
        """
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        try:
            with theirs:
                socket.send_fds(self.control, [FORK], [theirs.fileno()])
            async with asyncio.timeout(_START_SECONDS):
                await readable(ours)
            message, descriptors, _, _ = socket.recv_fds(ours, len(READY), 2)
            if not message:
                raise ConnectionResetError("The worker ended before it began.")
            if message == REFUSED:
                raise MachineFailed(_REFUSED)
        except BaseException:
            ours.close()
            raise
        return ours, descriptors[0], descriptors[1]

    def close(self) -> None:
        """End the process; its workers end with it."""
        self.control.close()
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def _become_forkserver(control: socket.socket, memory_bytes: int | None, modules: Sequence[str]) -> NoReturn:
    """Do in a forked process what a started one does, without the files of its parent."""
    try:
        gc.freeze()  # a file that is collected would close another one, which has its number now
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.closerange(3, control.fileno())
        os.closerange(control.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
        from imgsvc_core._runtime.worker_process import main

        main(control, memory_bytes, modules, preloads=False)
    finally:
        os._exit(1)


async def readable(connection: socket.socket | int) -> None:
    """Wait until there is something to read, or the end."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_reader(connection, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(connection)
