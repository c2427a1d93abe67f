"""The effect of signals on the command.

`exit_on_signals` exits at once, even while a codec computes and cannot be interrupted. `cancel_on_signals`
lets a batch stop gently.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

import click

from imgsvc_cli import printing
from imgsvc_core.targets import remove_unfinished

if TYPE_CHECKING:
    from imgsvc_batch.signals import Interrupts

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
    """Exit at a signal that ends processes, and remove unfinished files, while the block runs.

    Call it in the main thread.

    Python runs signal handlers in the main thread, once a codec has returned to it, and an exception that a
    handler raises is lost inside a callback of libvips. Therefore the handlers do nothing, and the wakeup
    descriptor wakes a thread that exits. Signals that are ignored, as by nohup, or handled stay as they are.
    """
    receiver, sender = os.pipe()
    os.set_blocking(sender, False)
    waiting = threading.Thread(target=_wait, args=(receiver,), name="imgsvc-signals", daemon=True)
    waiting.start()
    woken = signal.set_wakeup_fd(sender)
    try:
        with _handling(lambda *_: None):
            yield
    finally:
        signal.set_wakeup_fd(woken)
        os.close(sender)
        waiting.join()
        os.close(receiver)


@contextlib.contextmanager
def cancel_on_signals() -> Iterator[Interrupts]:
    """Handle signals as interrupts while the block runs, which must be in the main thread.

    An interrupt that leaves the block ends the command with the exit code of the signal. Signals that are
    ignored stay so, as SIGINT for commands that a script starts with ``&``.
    """
    from imgsvc_batch.signals import Interrupts

    interrupts = Interrupts()
    try:
        with _handling(interrupts.handle):
            yield interrupts
    except KeyboardInterrupt:
        number = interrupts.received or signal.SIGINT
        click.echo(f"imgsvc: {_SIGNALS[signal.Signals(number)]}", err=True)
        raise click.exceptions.Exit(128 + number) from None


@contextlib.contextmanager
def _handling(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handle the signals in the block, except those that are ignored or handled already."""
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    ours = {number: usual for number, usual in before.items() if usual in _UNHANDLED}
    for number in ours:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, usual in ours.items():
            signal.signal(number, usual)


def _wait(receiver: int) -> None:
    """Exit at the first of our signals; each arrives as a byte with its number."""
    while received := os.read(receiver, 1):
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
