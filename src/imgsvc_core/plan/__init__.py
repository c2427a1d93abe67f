"""WHAT will be done: a request and the facts of a source become steps with all numbers worked out."""

from imgsvc_core.plan.compiler import compile_plan, faces_in_result, wants_faces
from imgsvc_core.plan.plan import Plan, PlannedStep

__all__ = ["Plan", "PlannedStep", "compile_plan", "faces_in_result", "wants_faces"]
