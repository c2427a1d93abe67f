"""What a worker does with one input: read it, make every variant, write each whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import attrs

from imgsvc_core.batch.events import Event, Output
from imgsvc_core.batch.naming import Template
from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs.table import FORMATS
from imgsvc_core.errors import ImgsvcError, NameCollision, TargetError
from imgsvc_core.limits import Limits
from imgsvc_core.result import Result
from imgsvc_core.sources import is_url, open_bytes
from imgsvc_core.spec import Spec

_UNFINISHED = ".imgsvc-"


@attrs.frozen(kw_only=True)
class Job:
    """What a batch does to every input; ``token`` marks the unfinished files of a run."""

    variants: Mapping[str, Spec]
    target: str
    template: Template
    limits: Limits
    watermarks: Mapping[str, str] = attrs.field(factory=dict)
    token: str = ""


@attrs.frozen(kw_only=True)
class Task:
    """One input. Outputs in ``owned`` are its own from before; others are replaced only with ``replace``."""

    key: str
    location: str
    size: int
    owned: frozenset[str] = frozenset()
    replace: bool = False


def run_task(job: Job, task: Task) -> Event:
    """Do it. Whatever is wrong with the input or the target is told, and costs nothing else."""
    started = time.perf_counter()
    digest = ""
    try:
        source = open_bytes(task.location, job.limits)
        digest = source.sha256()
        outputs = _outputs(job, task, source, digest)
    except ImgsvcError as error:
        return _failed(task, digest, error.slug, error.message, started)
    except MemoryError:
        return _failed(task, digest, "worker_died", "There is not enough memory for this picture.", started)
    except Exception as error:  # a batch goes on, whatever a codec or a store does
        return _failed(task, digest, "internal_error", f"An unexpected error occurred: {error!r}.", started)
    return Event(
        key=task.key,
        outcome="done",
        bytes=task.size,
        digest=digest,
        outputs=outputs,
        seconds=time.perf_counter() - started,
    )


def run_tasks(job: Job, tasks: tuple[Task, ...]) -> list[Event]:
    """Do several, one after the other."""
    return [run_task(job, task) for task in tasks]


def _outputs(job: Job, task: Task, source: ByteSource, digest: str) -> tuple[Output, ...]:
    from imgsvc_core.processing import process_variants

    marks = {name: _mark(location) for name, location in job.watermarks.items()}
    results = process_variants(source, job.variants, limits=job.limits, threads=1, watermarks=marks or None)
    outputs: list[Output] = []
    try:
        for variant, result in results.items():
            path = _path(job, task, variant, result, digest)
            assert result.data is not None
            _write(job, path, result.data, free=path in task.owned or task.replace)
            outputs.append(
                Output(
                    variant=variant,
                    path=path,
                    format=result.output.format,
                    width=result.output.width,
                    height=result.output.height,
                    bytes=len(result.data),
                )
            )
    except TargetError:
        for output in outputs:
            if output.path not in task.owned:
                _remove(job.target, output.path)
        raise
    return tuple(outputs)


def _remove(target: str, path: str) -> None:
    with contextlib.suppress(OSError):
        if is_url(target):
            import fsspec

            fs, place = fsspec.core.url_to_fs(f"{target.rstrip('/')}/{path}")
            fs.rm_file(place)
        else:
            (Path(target) / path).unlink()


def _path(job: Job, task: Task, variant: str, result: Result, digest: str) -> str:
    return job.template.path(
        task.key,
        variant=variant,
        width=result.output.width,
        height=result.output.height,
        suffix=FORMATS[result.output.format].suffix,
        digest=digest,
    )


def _mark(location: str) -> ByteSource:
    return open_bytes(location, Limits())


def _write(job: Job, path: str, data: bytes, *, free: bool) -> None:
    if is_url(job.target):
        _put(f"{job.target.rstrip('/')}/{path}", data, free=free)
    else:
        _place(Path(job.target) / path, data, job.token, free=free)


def _place(path: Path, data: bytes, token: str, *, free: bool) -> None:
    """A file that appears whole; another one that is there already stays, unless it may be replaced.

    One with the same bytes is taken for this result: a worker that was lost may have written it.
    """
    beside = path.with_name(f"{_UNFINISHED}{token}-{secrets.token_hex(6)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            beside.write_bytes(data)
            if free:
                beside.replace(path)
            else:
                os.link(beside, path)
        finally:
            beside.unlink(missing_ok=True)
    except FileExistsError as error:
        if path.is_dir() or path.read_bytes() != data:
            raise _taken(str(path)) from error
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EOPNOTSUPP) and not free and not path.exists():
            _place(path, data, token, free=True)  # a file system without hard links
            return
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise TargetError(f"Target '{path}' cannot be written: {reason}.") from error


def _put(url: str, data: bytes, *, free: bool) -> None:
    import fsspec

    try:
        fs, path = fsspec.core.url_to_fs(url)
        if not free and fs.exists(path):
            if fs.size(path) != len(data) or fs.cat_file(path) != data:
                raise _taken(url)
            return
        if "/" in path and not fs.exists(path.rpartition("/")[0]):
            fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        fs.pipe_file(path, data)
    except ImportError as error:
        raise TargetError(f"Target '{url}' needs a package that is not installed: {error}.") from error
    except (OSError, ValueError) as error:
        raise TargetError(f"Target '{url}' cannot be written: {error}.") from error


def _taken(place: str) -> NameCollision:
    return NameCollision(
        f"Target '{place}' exists already, and is not from this input: use another target, a template that "
        "tells results apart, or --overwrite."
    )


def _failed(task: Task, digest: str, error: str, message: str, started: float) -> Event:
    return Event(
        key=task.key,
        outcome="failed",
        bytes=task.size,
        digest=digest,
        error=error,
        message=message,
        seconds=time.perf_counter() - started,
    )


def clear_unfinished(target: str, keys: Iterable[str]) -> None:
    """Delete the unfinished files that dead workers left where the results of inputs go."""
    if is_url(target):
        return
    for folder in {(Path(target) / key).parent for key in keys}:
        for left in folder.glob(f"{_UNFINISHED}*.part"):
            left.unlink(missing_ok=True)


def digest_of(job: Job) -> str:
    """What tells this work from other work."""
    parts = [f"{name}={spec.digest}" for name, spec in sorted(job.variants.items())]
    parts += [job.target, job.template.text, *sorted(job.watermarks.values())]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
