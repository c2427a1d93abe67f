"""Exit at once at a signal, even while a codec computes and cannot be interrupted."""

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

from imgsvc_cli import printing
from imgsvc_core.targets import remove_unfinished

_SHOW_CURSOR = "\r\x1b[K\x1b[?25h"
# Signals that end a process by default, except SIGQUIT. Schedulers send the last three.
_REASONS = {
    "SIGINT": "interrupted",
    "SIGTERM": "terminated",
    "SIGHUP": "hung up",
    "SIGUSR1": "ended by SIGUSR1",
    "SIGUSR2": "ended by SIGUSR2",
    "SIGXCPU": "ended by SIGXCPU",
}
_SIGNALS = {getattr(signal, name): reason for name, reason in _REASONS.items() if hasattr(signal, name)}
_UNHANDLED = (signal.SIG_DFL, signal.default_int_handler)


@contextlib.contextmanager
def exit_on_signals() -> Iterator[None]:
    """In the block, exit at a signal that ends processes, and remove unfinished files. For the main thread.

    Python runs signal handlers in the main thread, once a codec has returned to it, and an exception that a
    handler raises is lost inside a callback of libvips. Therefore the handlers do nothing, and the wakeup
    descriptor wakes a thread that exits. Signals that are ignored, as by nohup, or handled stay as they are.
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
    """Exit at the first of our signals; each arrives as a byte with its number."""
    while received := receiver.recv(1):
        reason = _SIGNALS.get(received[0])
        if reason is not None:
            _exit(128 + received[0], partial(click.echo, f"imgsvc: {reason}", err=True))


def _exit(code: int, report: Callable[[], None]) -> NoReturn:
    try:
        if printing.on_terminal():
            click.echo(_SHOW_CURSOR, err=True, nl=False)
        report()
    finally:
        try:
            remove_unfinished()
        finally:
            os._exit(code)
