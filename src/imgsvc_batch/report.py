"""Write the outcome of a batch as one HTML page that needs no server: numbers, reasons, pictures."""

from __future__ import annotations

import base64
import contextlib
import errno
import html
import json
import os
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from imgsvc_batch.events import Output
from imgsvc_batch.executors import open_pool
from imgsvc_batch.manifest import Manifest, Reason, Totals, files_of
from imgsvc_batch.places import is_in_memory, join
from imgsvc_batch.work import TRANSFER_SECONDS
from imgsvc_core import ImgsvcError, Limits, SpecError
from imgsvc_core.errors import invalid
from imgsvc_core.sources import is_url
from imgsvc_core.targets import open_target

_PICTURES = 60
_SIDE = 240
_FAILURES_SHOWN = 20

_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 68rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; }
dl { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; }
dt { opacity: .7; } dd { margin: 0; font-size: 1.5rem; }
table { border-collapse: collapse; width: 100%; table-layout: fixed; overflow-wrap: anywhere; }
th:nth-child(1) { width: 4.5rem; } th:nth-child(2) { width: 20%; }
td, th { text-align: left; padding: .4rem .8rem .4rem 0;
 vertical-align: top; border-bottom: 1px solid #8884; }
.pictures { display: grid; gap: 1.5rem;
 grid-template-columns: repeat(auto-fill, minmax(min(30rem, 100%), 1fr)); }
figure { margin: 0; min-width: 0; padding: 1rem; border: 1px solid #8884; border-radius: .5rem; }
figure > div { display: flex; flex-wrap: wrap; gap: 1rem; align-items: end; }
figure span { display: block; font-size: .8rem; opacity: .8; }
img { max-width: 9rem; max-height: 9rem;
 background: repeating-conic-gradient(#ccc 0 25%, #fff 0 50%) 0 0/16px 16px; }
.facts { display: grid; grid-template-columns: auto 1fr; gap: 0 .6rem; font-size: .8rem; margin: .4rem 0 0; }
.facts dd { font-size: inherit; overflow-wrap: anywhere; } .facts img { width: 3rem; }
.facts i { display: inline-block; width: 1em; height: 1em; border: 1px solid #8884; }
figure > div:has(.facts) { align-items: start; }
figcaption { margin-top: .6rem; overflow-wrap: anywhere; }
"""


def write_report(
    manifest: Manifest,
    target: str,
    path: Path,
    *,
    pictures: int = _PICTURES,
    limits: Limits | None = None,
    workers: int | None = None,
) -> None:
    """Write the page, whole or not at all.

    Args:
        manifest: the outcomes of the inputs.
        target: where the results are.
        path: the page's file.
        pictures: the number of inputs to show before and after, those that saved the most bytes.
        limits: how much work one picture may cause, as in the batch.
        workers: the number of processes that make the small copies; one for each core by default.

    Raises:
        SpecError: the file is one of the manifest's.
        TargetError: the page cannot be written.
    """
    _check_is_no_manifest(path, manifest.path)
    head = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width'><title>Batch report</title>",
        f"<style>{_STYLE}</style><body><h1>Batch report</h1>",
        _numbers(manifest.totals()),
        _reasons(manifest.reasons(keys=_FAILURES_SHOWN)),
        "<h2>Before and after</h2><div class=pictures>",
    ]
    figures = _figures(manifest.done(most=pictures), target, limits or Limits(), workers)
    page = "\n".join([*head, *figures, "</div></body></html>\n"])
    with contextlib.suppress(OSError):  # reported when the page is written
        path.parent.mkdir(parents=True, exist_ok=True)
    with open_target(path) as file:
        file.write(page.encode())


def check_report(path: Path, target: str, manifest: Path) -> None:
    """Raise `SpecError` if the page cannot be written. The target may not exist yet."""
    _check_is_no_manifest(path, manifest)
    folder = Path(os.path.realpath(path)).parent
    if not os.path.exists(folder) and folder.is_relative_to(os.path.realpath(target)):
        return
    number = 0
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:  # such as a name that is too long
        number = error.errno or errno.EIO
    if os.path.isdir(path):
        number = errno.EISDIR
    elif not os.path.isdir(folder):
        number = number or errno.ENOENT
    elif not os.access(path if os.path.exists(path) and not os.path.isfile(path) else folder, os.W_OK):
        number = errno.EACCES
    if number:
        raise _not_writable(path, os.strerror(number))


def _check_is_no_manifest(path: Path, manifest: Path) -> None:
    if os.path.realpath(path) in files_of(manifest):
        raise _not_writable(path, "it is a file of the batch's manifest")


def _not_writable(path: Path, reason: str) -> SpecError:
    message = f"Report 'path' parameter must be a file that can be written, got '{path}': {reason}"
    return invalid("path", message)


def _numbers(totals: Totals) -> str:
    saved = 1 - totals.bytes_out / totals.bytes_in if totals.bytes_in else 0.0
    numbers = {
        "Inputs": f"{totals.inputs:,}",
        "Done": f"{totals.done:,}",
        "Failed": f"{totals.failed:,}",
        "Before": _size(totals.bytes_in),
        "After": _size(totals.bytes_out),
        "Saved": f"{saved:.0%}",
    }
    return (
        "<dl>"
        + "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in numbers.items())
        + "</dl>"
    )


def _reasons(reasons: list[Reason]) -> str:
    if not reasons:
        return ""
    rows = "".join(
        f"<tr><td>{reason.count:,}</td><td>{html.escape(reason.error)}</td>"
        f"<td>{html.escape(reason.message)}</td><td>{html.escape(', '.join(reason.keys))}</td></tr>"
        for reason in reasons
    )
    head = "<tr><th>Inputs</th><th>Kind</th><th>For example</th><th>Which</th></tr>"
    return f"<h2>Failures</h2><table>{head}{rows}</table>"


def _figures(
    inputs: list[tuple[str, str, int, list[Output]]], target: str, limits: Limits, workers: int | None
) -> list[str]:
    """Return inputs beside their results. The pictures may be hostile, so worker processes decode them."""
    if not inputs:
        return []
    with open_pool(workers, limits) as pool, ThreadPoolExecutor(1) as thread:

        def submit(place: str) -> Future[bytes]:
            if is_in_memory(place):
                return thread.submit(_thumbnail, place, limits)
            grace = TRANSFER_SECONDS if is_url(place) else 1.0
            return pool.submit(_thumbnail, place, limits, seconds=limits.seconds, grace=grace)

        submitted = [
            [submit(place) for place in _shown_places(location, target, outputs)]
            for _, location, _, outputs in inputs
        ]
        return [
            _figure(key, size, outputs, [_image(future) for future in futures])
            for (key, _, size, outputs), futures in zip(inputs, submitted, strict=True)
        ]


def _shown_places(location: str, target: str, outputs: list[Output]) -> list[str]:
    """Return the places of an input and its results, or the only one if a result took its place."""
    paths = [output.path for output in outputs]
    return [location] if location in paths else [location, *(join(target, path) for path in paths)]


def _figure(key: str, size: int, outputs: list[Output], images: list[str]) -> str:
    before = images.pop(0) if len(images) > len(outputs) else ""
    shown = [f"<div><span>before<br>{_size(size)}</span>{before}</div>"]
    for output, image in zip(outputs, images, strict=True):
        saving = f" ({output.bytes / size - 1:+.0%})" if size else ""
        label = (
            f"{html.escape(output.variant)} {output.width} x {output.height}<br>{_size(output.bytes)}{saving}"
        )
        shown.append(f"<div><span>{label}</span>{image}{_facts(output.facts)}</div>")
    return f"<figure><div>{''.join(shown)}</div><figcaption>{html.escape(key)}</figcaption></figure>\n"


def _facts(facts: Mapping[str, Any]) -> str:
    """Return the HTML of facts: a list in which colors and placeholders are shown."""
    if not facts:
        return ""
    rows = "".join(f"<dt>{name}</dt><dd>{_fact(name, value)}</dd>" for name, value in facts.items())
    return f"<dl class=facts>{rows}</dl>"


def _fact(name: str, value: Any) -> str:
    match name:
        case "palette":
            return "".join(
                f"<i style='background:{color['color']}' title='{color['color']} {color['share']:.0%}'></i>"
                for color in value
            )
        case "dominant" if value:
            return f"<i style='background:{value}' title='{value}'></i>"
        case "lqip":
            return f"<img alt='' src='{value}'>"
    return html.escape(json.dumps(value).strip('"'))


def _thumbnail(place: str, limits: Limits) -> bytes:
    """Return a small copy of a picture."""
    from imgsvc_core import process

    request = {
        "resize": {"width": _SIDE, "height": _SIDE, "upscale": False},
        "output": {"format": "webp", "quality": 70},
    }
    return process(place, request, limits=limits, threads=1).data


def _image(thumbnail: Future[bytes]) -> str:
    """Return the HTML element of a picture, or the error if it could not be read."""
    try:
        data = thumbnail.result()
    except ImgsvcError as error:
        return f"<span>{html.escape(error.message)}</span>"
    return f"<img alt='' src='data:image/webp;base64,{base64.b64encode(data).decode('ascii')}'>"


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} TB"
