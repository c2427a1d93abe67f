"""Many pictures: from folders and buckets to folders and buckets, in any number of variants.

::

    from imgsvc_core import batch

    summary = batch.run("photos/", "small/", {"thumb": {"resize": {"width": 200}}})
    print(summary.done, summary.failed)

`inputs` finds the pictures, `naming` names the results, `manifest` remembers what became of each, `work` is
what a worker does with one, `local` and `cluster` hand out the work, `report` shows the outcome to people.
"""

from imgsvc_core.batch.events import Event, Progress, Summary
from imgsvc_core.batch.manifest import Manifest
from imgsvc_core.batch.naming import Template
from imgsvc_core.batch.running import Batch, run

__all__ = ["Batch", "Event", "Manifest", "Progress", "Summary", "Template", "run"]
