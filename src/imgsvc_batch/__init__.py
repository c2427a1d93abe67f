"""Many pictures: from folders and buckets to folders and buckets, in any number of variants.

::

    import imgsvc_batch

    summary = imgsvc_batch.run("photos/", "small/", {"thumb": {"resize": {"width": 200}}})
    print(summary.done, summary.failed)

`planning` checks what is to be done, by `arguments` for each of its parts, and `places` knows paths and URLs;
`inputs` finds the pictures, in `listing` ahead of the work; `naming` names the results; `manifest` tells what
became of each, which a run writes by its `journal`, in a `manifest_file`. `work` is what a worker does with
one, `writing` how the results get to their places, `reasons` why not. `running` runs a batch after `starting`
it, with the `hands` of `local`, `inside` or `cluster` (at whose far end stands `cluster_worker`) to do the
work; `preview` tells what it would do, and `report` shows the outcome to people.
"""

from imgsvc_batch.events import Event, Progress, Summary
from imgsvc_batch.manifest import Manifest
from imgsvc_batch.naming import Template
from imgsvc_batch.planning import Batch
from imgsvc_batch.running import run

__all__ = ["Batch", "Event", "Manifest", "Progress", "Summary", "Template", "run"]
