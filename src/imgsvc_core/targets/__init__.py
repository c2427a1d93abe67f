"""Everything that a result can be written to, whole or not at all. The names here are for front ends too."""

from imgsvc_core.targets.writing import (
    changed_meanwhile,
    name_of,
    open_target,
    put_object,
    remove_unfinished,
    replace_file,
    stamp_of,
    store_of,
    sync,
    unwritable,
    writing_to,
)

__all__ = [
    "changed_meanwhile",
    "name_of",
    "open_target",
    "put_object",
    "remove_unfinished",
    "replace_file",
    "stamp_of",
    "store_of",
    "sync",
    "unwritable",
    "writing_to",
]
