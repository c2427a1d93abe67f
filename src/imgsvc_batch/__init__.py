"""Process many pictures, from folders and buckets to folders and buckets, in any number of variants.

::

    import imgsvc_batch

    summary = imgsvc_batch.run("photos/", "small/", {"thumb": {"resize": {"width": 200}}})
    print(summary.done, summary.failed)

The way of a batch through the modules: `arguments` checks the request. `inputs` finds the pictures, and
`listing` runs it ahead of the work. `selection` skips the inputs that the `manifest` records as done.
`runner` hands the others to one of the `executors` or to a `cluster`, whose workers do the `work` and write
`results`. `placing` decides which results may have their names, and moves them there; `in_place` replaces
the inputs instead. `previewing` is the dry run, and `report` shows the outcome.
"""

from typing import TYPE_CHECKING

from imgsvc_core._runtime.public_names import names_later

if TYPE_CHECKING:
    from imgsvc_batch.arguments import Batch, BatchOptions, default_manifest
    from imgsvc_batch.events import Event, Output, Progress, Summary
    from imgsvc_batch.inputs import Input
    from imgsvc_batch.manifest import Manifest
    from imgsvc_batch.naming import Template
    from imgsvc_batch.previewing import preview
    from imgsvc_batch.report import write_report
    from imgsvc_batch.runner import run, run_batch, run_in_place

# Worker processes need few of these.
__getattr__ = names_later(
    __name__,
    {
        "arguments": ("Batch", "BatchOptions", "default_manifest"),
        "events": ("Event", "Output", "Progress", "Summary"),
        "inputs": ("Input",),
        "manifest": ("Manifest",),
        "naming": ("Template",),
        "previewing": ("preview",),
        "report": ("write_report",),
        "runner": ("run", "run_batch", "run_in_place"),
    },
)

__all__ = [
    "Batch",
    "BatchOptions",
    "Event",
    "Input",
    "Manifest",
    "Output",
    "Progress",
    "Summary",
    "Template",
    "default_manifest",
    "preview",
    "run",
    "run_batch",
    "run_in_place",
    "write_report",
]
