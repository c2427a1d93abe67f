"""The parent process: it hands connections to listening processes, and replaces those that die or hang."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, Self

import attrs

from imgsvc_core.errors import ImgsvcError
from imgsvc_http.runtime.shared_memory import shared_numbers
from imgsvc_http.server import channel
from imgsvc_http.server.channel import Channel
from imgsvc_http.server.watchdog import LOOK_SECONDS, Watchdog

if TYPE_CHECKING:
    import subprocess

    from imgsvc_core._runtime.forkserver import Child

_log = logging.getLogger(__name__)

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_RETRY_SECONDS = 1.0
_FULL_SECONDS = 0.005
_ABORT_SECONDS = 1.0
_WAKE_BYTES = 64
_FIRST_PROCESS = 1
_PR_SET_PDEATHSIG = 1

Listen = Callable[[Channel, bool], None]
"""Serve connections of a channel until it says stop; True if this is the first start of the process."""


class Signals:
    """Counts the signals that end the service, from the start of a block to its end."""

    def __init__(self) -> None:
        self.count = 0
        self._waking, self.woken = socket.socketpair()
        self._waking.setblocking(False)

    def __enter__(self) -> Self:
        self._handlers = [signal.signal(number, self._note) for number in _SIGNALS]
        self._at_child = signal.signal(signal.SIGCHLD, lambda *_: None)  # only wakes up
        self._wakeup_fd = signal.set_wakeup_fd(self._waking.fileno(), warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._wakeup_fd)
        for number, handler in zip(_SIGNALS, self._handlers, strict=True):
            signal.signal(number, handler)
        signal.signal(signal.SIGCHLD, self._at_child)
        self._waking.close()
        self.woken.close()

    def ignore(self) -> None:
        """Leave signals to the parent: a terminal or systemd sends them to the whole group."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)

    def _note(self, *_: object) -> None:
        self.count += 1


@attrs.define(eq=False)
class _Listener:
    number: int
    pid: int
    channel: socket.socket
    started: float
    ready: bool = False
    handed: int = 0
    told_to_abort: float | None = None


class Supervisor:
    """Runs listening processes behind one socket.

    Each new connection goes to the process with the fewest open ones: a few connections are spread as evenly
    as many, which neither a shared listening socket nor one for each process (``SO_REUSEPORT``) does. A late
    process gets connections only if all are late.

    Args:
        listening: the socket.
        listen: what a listening process does.
        processes: how many there are.
        signals: the signals that end the service.
        drain_seconds: how long connections are accepted after the first signal.
        unresponsive_seconds: after which silence a process is killed and replaced.
    """

    def __init__(
        self,
        listening: socket.socket,
        listen: Listen,
        processes: int,
        signals: Signals,
        *,
        drain_seconds: float,
        unresponsive_seconds: float,
    ) -> None:
        self._listening = listening
        self._listen = listen
        self._drain_seconds = drain_seconds
        self._closed = shared_numbers(processes)
        self._watchdog = Watchdog(processes, unresponsive_seconds)
        self._listeners: dict[int, _Listener] = {}
        self._children: set[int] = set()  # beside the listeners
        self._missing: dict[int, float] = {}  # numbers of dead processes, and when to replace them
        self._selector = selectors.DefaultSelector()
        self._accepting = False
        self._last = 0
        self._signals = signals
        self._drain_at: float | None = None
        self._stopping = False

    def collect(self, process: subprocess.Popen[bytes] | Child) -> None:
        """Collect a child process as soon as it ends, which listening processes replace."""
        descriptor = os.pidfd_open(process.pid)
        self._children.add(process.pid)

        def ended() -> None:
            self._children.discard(process.pid)
            self._selector.unregister(descriptor)
            os.close(descriptor)
            code = process.wait()
            if not self._stopping:
                _log.error("The process that forks workers ended (%s); others take its place.", _how(code))

        self._selector.register(descriptor, selectors.EVENT_READ, ended)

    def run(self, greet: Callable[[Any], None]) -> None:
        """Serve until a signal, then let the processes drain and end.

        Args:
            greet: is called with the report of the first process as soon as all are ready.

        Raises:
            ImgsvcError: a process cannot start.
        """
        self._selector.register(self._signals.woken, selectors.EVENT_READ)
        try:
            for number in range(len(self._closed)):
                self._start(number, first=True)
            self._run(greet)
        finally:
            self._end()

    def _run(self, greet: Callable[[Any], None]) -> None:
        reports: dict[int, Any] = {}
        greeted = False
        while self._listeners or not self._stopping:
            self._accept_if_ready(greeted)
            for key, _ in self._selector.select(self._timeout()):
                if key.fileobj is self._listening:
                    self._accept()
                elif isinstance(key.data, _Listener):
                    self._hear(key.data, reports, greeted=greeted)
                elif callable(key.data):
                    key.data()
                else:
                    self._signals.woken.recv(_WAKE_BYTES)
            self._collect_orphans()
            self._end_hung()
            if not greeted and len(reports) == len(self._closed):
                greeted = True
                greet(reports[0])
            self._stop_if_signaled(greeted)
            if not self._signals.count:
                self._replace()

    def _start(self, number: int, *, first: bool) -> None:
        ours, theirs = channel.pair()
        self._closed[number] = 0
        self._watchdog.restart(number)
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._become_listener(parent, ours, Channel(theirs, self._closed, self._watchdog, number), first)
        theirs.close()
        listener = _Listener(number, pid, ours, time.monotonic())
        self._listeners[number] = listener
        self._selector.register(ours, selectors.EVENT_READ, listener)

    def _become_listener(self, parent: int, ours: socket.socket, own: Channel, first: bool) -> NoReturn:
        """Run in the new process, and never return to what the parent was doing."""
        code = 1
        try:
            self._signals.ignore()
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)
            self._selector.close()
            self._listening.close()
            for other in (ours, *(listener.channel for listener in self._listeners.values())):
                other.close()
            self._listen(own, first)
            code = 0
        except ImgsvcError as error:
            own.report_failure(error)
        except BaseException:
            _log.exception("A listening process failed.")
        finally:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
                logging.shutdown()
            os._exit(code)

    def _accept_if_ready(self, greeted: bool) -> None:
        """Watch the listening socket as long as there is somebody to hand connections to."""
        wanted = greeted and not self._stopping and any(item.ready for item in self._listeners.values())
        if wanted and not self._accepting:
            self._selector.register(self._listening, selectors.EVENT_READ)
        elif self._accepting and not wanted:
            self._selector.unregister(self._listening)
        self._accepting = wanted

    def _accept(self) -> None:
        try:
            connection, _ = self._listening.accept()
        except OSError:  # too many open files, or a client that has gone
            time.sleep(_FULL_SECONDS)
            return
        with connection:
            self._hand_over(connection)

    def _hand_over(self, connection: socket.socket) -> None:
        while candidates := [item for item in self._listeners.values() if item.ready]:
            count = len(self._closed)
            candidates.sort(
                key=lambda item: (
                    self._watchdog.is_late(item.number),
                    item.handed - self._closed[item.number],
                    (item.number - self._last - 1) % count,
                )
            )
            for listener in candidates:
                try:
                    socket.send_fds(listener.channel, [channel.CONNECTION], [connection.fileno()])
                except BlockingIOError:  # it has not taken earlier connections yet
                    continue
                except OSError:
                    listener.ready = False  # it died
                    continue
                listener.handed += 1
                self._last = listener.number
                return
            time.sleep(_FULL_SECONDS)
            self._end_hung()

    def _end_hung(self) -> None:
        """Kill processes that hang. Their channels tell when they have ended."""
        self._watchdog.look()
        for listener in self._listeners.values():
            if not self._watchdog.hangs(listener.number):
                continue
            if listener.told_to_abort is None:
                _log.error("A listening process (%d) does not respond, and is ended.", listener.pid)
                os.kill(listener.pid, signal.SIGABRT)  # the command then logs where it hangs
                listener.told_to_abort = time.monotonic()
            elif time.monotonic() - listener.told_to_abort > _ABORT_SECONDS:
                os.kill(listener.pid, signal.SIGKILL)

    def _hear(self, listener: _Listener, reports: dict[int, Any], *, greeted: bool) -> None:
        """Take the report of a process, or note that it died."""
        try:
            reports[listener.number] = channel.receive_report(listener.channel)
            listener.ready = True
            return
        except BlockingIOError:
            return
        except ImgsvcError as error:
            if not greeted and not self._signals.count:
                raise
            _log.error("A listening process cannot start: %s", error)
        except (EOFError, OSError):
            pass
        self._bury(listener)
        if not greeted and not self._signals.count:
            raise ImgsvcError("A listening process died while it started: its output above may say why.")

    def _bury(self, listener: _Listener) -> None:
        self._selector.unregister(listener.channel)
        listener.channel.close()
        del self._listeners[listener.number]
        _, status = os.waitpid(listener.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if not self._stopping and not self._signals.count:
            _log.error(
                "A listening process ended unexpectedly (%s); another one takes its place.", _how(code)
            )
        lived = time.monotonic() - listener.started
        self._missing[listener.number] = time.monotonic() + (0 if lived > _RETRY_SECONDS else _RETRY_SECONDS)

    def _collect_orphans(self) -> None:
        """Collect what ended and was adopted by this process, if it is the first one of a container.

        These are workers whose fork server died.
        """
        if os.getpid() != _FIRST_PROCESS:
            return
        own = self._children.union(listener.pid for listener in self._listeners.values())
        with contextlib.suppress(ChildProcessError):  # there is no child at all
            while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                if ended.si_pid in own:
                    return
                os.waitpid(ended.si_pid, 0)

    def _replace(self) -> None:
        for number, moment in list(self._missing.items()):
            if moment <= time.monotonic():
                del self._missing[number]
                self._start(number, first=False)

    def _timeout(self) -> float:
        moments = [] if self._signals.count else list(self._missing.values())
        if self._drain_at is not None and not self._stopping:
            moments.append(self._drain_at)
        return max(0.0, min([LOOK_SECONDS, *(moment - time.monotonic() for moment in moments)]))

    def _stop_if_signaled(self, greeted: bool) -> None:
        """Tell the processes to be no longer ready at the first signal, and to drain at the second or later.

        In between, connections are accepted, until balancers send no more.
        """
        if not self._signals.count or self._stopping:
            return
        if self._drain_at is None:
            self._tell_to_stop()
            self._drain_at = time.monotonic() + (self._drain_seconds if greeted else 0)
            if greeted and self._drain_seconds:
                text = "Serving for %g more seconds, until balancers send no more requests."
                _log.info(text, self._drain_seconds)
        if self._signals.count > 1 or time.monotonic() >= self._drain_at:
            self._stopping = True
            self._tell_to_stop()
            self._accept_if_ready(greeted)
            self._listening.close()

    def _tell_to_stop(self) -> None:
        for listener in self._listeners.values():
            with contextlib.suppress(OSError):
                listener.channel.send(channel.STOP)

    def _end(self) -> None:
        """End processes that are left after a failure."""
        self._stopping = True
        for listener in list(self._listeners.values()):
            os.kill(listener.pid, signal.SIGKILL)
            self._bury(listener)
        self._selector.close()


def _how(code: int) -> str:
    """Return in words how a process ended."""
    return signal.Signals(-code).name if code < 0 else f"code {code}"
