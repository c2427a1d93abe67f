"""Everything that a result can be written to, whole or not at all. The names here are for front ends too."""

from imgsvc_core.targets.writing import name_of, open_target, put_object, remove_unfinished

__all__ = ["name_of", "open_target", "put_object", "remove_unfinished"]
