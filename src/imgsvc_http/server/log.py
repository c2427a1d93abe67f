"""The log of a process that serves. No line of it is one that a client wrote."""

from __future__ import annotations

import logging
import re
import traceback
import warnings

from imgsvc_http.monitoring.access_log import LOGGER
from imgsvc_http.server.log_writer import LogWriter

_OF_CLIENTS = ("aiohttp", "asyncio", "multipart")
_STDERR = 2
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]")


def begin_log(*, verbose: bool) -> None:
    """Write log messages to standard error from now on."""
    warnings.simplefilter("ignore")  # they repeat headers, and are kept in memory
    formatter = _Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def notice(lost: int) -> str:
        text = f"{lost:,} lines of the log were lost here, as nobody read it."
        return formatter.format(logging.LogRecord(__name__, logging.WARNING, __file__, 0, text, None, None))

    global _writer
    _writer = LogWriter(_STDERR, notice)
    handler = _Queued(_writer)
    handler.setFormatter(formatter)
    logging.raiseExceptions = False  # nor does anybody wait for standard error then
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, handlers=[handler])
    # No format shows them, and finding them out for each line takes time.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    access_log = logging.getLogger(LOGGER)
    access_log.setLevel(logging.INFO)
    access_log.propagate = False  # its lines are whole
    access_log.addHandler(_Lines(_writer))
    engine = logging.getLogger("dbos")  # which would write to standard error by itself
    engine.propagate = False
    engine.addHandler(handler)


_writer: LogWriter | None = None


def lost_lines() -> int:
    """Return how many lines of the log of this process were lost."""
    return 0 if _writer is None else _writer.lost


class _Queued(logging.Handler):
    """Gives formatted messages to the writer."""

    def __init__(self, writer: LogWriter) -> None:
        super().__init__()
        self._writer = writer

    def emit(self, record: logging.LogRecord) -> None:
        self._writer.write(self.format(record))

    def flush(self) -> None:
        self._writer.flush()


class _Lines(_Queued):
    """Takes messages that are whole lines, without the steps of formatting."""

    def emit(self, record: logging.LogRecord) -> None:
        self._writer.write(record.msg)


class _Formatter(logging.Formatter):
    """Indents all lines but the first, so that no text of a message looks like another message.

    Of libraries that read what clients send, only the constant text of a message is written, and of its
    exception only the type and where it was raised.
    """

    def format(self, record: logging.LogRecord) -> str:
        if record.name.partition(".")[0] in _OF_CLIENTS:
            record = _without_values(record)
        text = super().format(record).replace("\n", "\n  ")
        return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def _without_values(record: logging.LogRecord) -> logging.LogRecord:
    fields = {**record.__dict__, "args": None, "exc_info": None, "exc_text": None, "stack_info": None}
    text = str(record.msg).partition("\n")[0]  # asyncio lists values in further lines
    if record.exc_info and record.exc_info[0] is not None:
        kind, _, frames = record.exc_info
        text += f"\n{kind.__qualname__}\n{''.join(traceback.format_tb(frames))}".rstrip()
    return logging.makeLogRecord({**fields, "msg": text})
