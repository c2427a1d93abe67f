"""The end of a command at once, though a codec is at work that nothing else stops."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import NoReturn

import click

from imgsvc_cli import exit_codes, printing
from imgsvc_core.deadline import on_overrun
from imgsvc_core.errors import TimeLimitExceeded
from imgsvc_core.targets import remove_unfinished

_SHOW_CURSOR = "\r\x1b[K\x1b[?25h"
# What ends a process, but for SIGQUIT, which stays as it is. Schedulers send the last three.
_TOLD = {
    "SIGINT": "interrupted",
    "SIGTERM": "terminated",
    "SIGHUP": "hung up",
    "SIGUSR1": "ended by SIGUSR1",
    "SIGUSR2": "ended by SIGUSR2",
    "SIGXCPU": "ended by SIGXCPU",
}
_SIGNALS = {getattr(signal, name): told for name, told in _TOLD.items() if hasattr(signal, name)}
_UNHANDLED = (signal.SIG_DFL, signal.default_int_handler)


@contextlib.contextmanager
def end_on_overrun(tell: Callable[[TimeLimitExceeded], None]) -> Iterator[None]:
    """In the block, end this process with the exit code of the error, and no half file, once that is told."""
    on_overrun(lambda error: _end(exit_codes.exit_code(error), lambda: tell(error)))
    try:
        yield
    finally:
        on_overrun(None)


@contextlib.contextmanager
def end_on_signals() -> Iterator[None]:
    """In the block, which is the main thread's, end this process at a signal to, and leave no half file.

    Python handles a signal in the main thread, once a codec has returned to it, and what a handler raises is
    lost where libvips called back. So the handlers do nothing here, and a thread is woken that ends it all.
    Signals that are ignored, as by nohup, or have a handler already, stay as they are.
    """
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    waiting = threading.Thread(target=_wait, args=(receiver,), name="imgsvc-signals", daemon=True)
    waiting.start()
    woken = signal.set_wakeup_fd(sender.fileno())
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    ours = {number: handler for number, handler in handlers.items() if handler in _UNHANDLED}
    for number in ours:
        signal.signal(number, lambda *_: None)
    try:
        yield
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(woken)
        sender.close()
        waiting.join()
        receiver.close()


@contextlib.contextmanager
def taking_signals_for_interrupts() -> Iterator[Callable[[], int]]:
    """In the block, which is the main thread's, whatever ends a process is an interrupt; gives the exit code.

    Schedulers send SIGTERM, and the first process of a container would not even notice it.
    """
    received: int = signal.SIGINT

    def interrupt(number: int, _: object) -> None:
        nonlocal received
        received = number
        signal.raise_signal(signal.SIGINT)

    ours = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, interrupt)
    try:
        yield lambda: 128 + received
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _wait(receiver: socket.socket) -> None:
    """End at the first signal to; the numbers of signals come as bytes, until there can be no more."""
    while received := receiver.recv(1):
        told = _SIGNALS.get(received[0])
        if told is not None:
            _end(128 + received[0], partial(click.echo, f"imgsvc: {told}", err=True))


def _end(code: int, tell: Callable[[], None]) -> NoReturn:
    try:
        if printing.on_terminal():
            click.echo(_SHOW_CURSOR, err=True, nl=False)
        tell()
    finally:
        try:
            remove_unfinished()
        finally:
            os._exit(code)
