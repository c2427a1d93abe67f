"""What goes from where to where."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import attrs

import imgsvc_core as imgsvc
from imgsvc_cli.outcome import size
from imgsvc_core.errors import TargetError
from imgsvc_core.plan.encoding import candidates
from imgsvc_core.sources import is_url
from imgsvc_core.spec import Output

_PIPE = "-"


@attrs.frozen
class Job:
    """One source and its target; a target of ``None`` is named after the source and its format."""

    source: str
    target: str | None
    folder: str | None
    force: bool

    @property
    def piped(self) -> bool:
        """Whether the result goes to standard output."""
        return self.target == _PIPE

    @property
    def label(self) -> str:
        """The name of the source for people."""
        return "standard input" if self.source == _PIPE else Path(self.source).name

    def summary(self, result: imgsvc.Result) -> str:
        """One line about what was done."""
        before, after = result.input, result.output
        saved = f"{(after.bytes - before.bytes) / before.bytes:+.0%}" if before.bytes else ""
        seconds = sum(attrs.astuple(result.timing)) / 1000
        width, height = before.upright_size
        return (
            f"{self.label} {width}x{height} {size(before.bytes)} -> {after.name or 'standard output'} "
            f"{after.width}x{after.height} {size(after.bytes)} ({saved}), {seconds:.2f} s"
        )


def plan_jobs(sources: tuple[str, ...], target: str | None, *, force: bool) -> list[Job]:
    """One job for each source.

    Raises:
        TargetError: several sources would go to one file.
    """
    into_folder = target is not None and (
        target.endswith("/") or (not is_url(target) and Path(target).is_dir())
    )
    if target is not None and not into_folder and len(sources) > 1:
        raise TargetError(f"Target '{target}' must be a folder for {len(sources)} sources, got a file.")
    if into_folder:
        return [Job(source, None, target, force) for source in sources]
    default = _PIPE if sources == (_PIPE,) and target is None else target
    return [Job(source, default, None, force) for source in sources]


def run_job(job: Job, request: imgsvc.Spec) -> imgsvc.Result:
    """Do the job. An existing file is replaced only where it was named, or with ``--force``."""
    source: Any = sys.stdin.buffer.read() if job.source == _PIPE else job.source
    target: Any = sys.stdout.buffer if job.piped else job.target or _named(job, source, request)
    return imgsvc.process(source, request, target, watermarks=_watermark)


def _named(job: Job, source: Any, request: imgsvc.Spec) -> str:
    """The folder's or the source's place, with the suffix of the format that the result will have."""
    info = imgsvc.inspect(source)
    suffix = candidates(request.output or Output(), info)[0].suffix
    stem = "image" if job.source == _PIPE else Path(job.source).stem
    if job.folder is not None and is_url(job.folder):
        return f"{job.folder.rstrip('/')}/{stem}{suffix}"
    if job.folder is not None:
        path = Path(job.folder) / f"{stem}{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
    elif is_url(job.source):
        path = Path(f"{stem}{suffix}")
    else:
        path = Path(job.source).with_name(f"{stem}-out{suffix}")
    if path.exists() and not job.force:
        raise TargetError(f"Target '{path}' exists already; name it with -o, or use --force to replace it.")
    return str(path)


def _watermark(name: str) -> str | None:
    return name if is_url(name) or Path(name).is_file() else None
