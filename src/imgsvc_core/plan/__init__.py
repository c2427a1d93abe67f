"""Plans: a request and the facts of a source become steps with all numbers worked out."""

from imgsvc_core.plan.compiler import compile_plan, redacts_faces, wants_faces
from imgsvc_core.plan.pipeline import PHASES
from imgsvc_core.plan.plan import Plan
from imgsvc_core.plan.seen import NOTHING_SEEN, Seen

__all__ = ["NOTHING_SEEN", "PHASES", "Plan", "Seen", "compile_plan", "redacts_faces", "wants_faces"]
