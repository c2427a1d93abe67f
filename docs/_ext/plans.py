"""A picture of a plan: what a request asks for beside the steps that run."""

from __future__ import annotations

import html
from typing import Any

from shown import PICTURES

import imgsvc_core as imgsvc

REQUEST: dict[str, Any] = {
    "resize": {"width": 300},
    "adjust": {"exposure": 20, "contrast": 10, "gamma": 5, "saturation": -20, "hue": 15, "invert": True},
    "filter": {"sepia": {"value": 40}, "vignette": {"value": 60, "radius": 40}},
    "output": {"format": "webp"},
}


def folded() -> str:
    """Return the plan of a request with many color operations as HTML."""
    plan = imgsvc.explain(imgsvc.parse(REQUEST), imgsvc.inspect(PICTURES / "portrait.jpg"))
    asked = "\n".join(f"<li>{html.escape(text)}</li>" for text in _asked())
    steps = "\n".join(map(_step, plan.to_dict()["steps"]))
    return (
        f'<div class="plan">\n<ul class="asked">\n{asked}\n</ul>\n<ol class="steps">\n{steps}\n</ol>\n</div>'
    )


def _asked() -> list[str]:
    texts = []
    for key, given in REQUEST.items():
        for name, value in given.items():
            inner = ", ".join(map(str, value.values())) if isinstance(value, dict) else str(value).lower()
            texts.append(f"{key}.{name} {inner}")
    return texts


def _step(step: dict[str, Any]) -> str:
    size = f"{step['width']} x {step['height']}"
    why = f"<small>{html.escape(step['why'])}</small>" if step["why"] else ""
    return f"<li><b>{step['phase']}</b> <i>{size}</i><br>{html.escape(step['text'])}{why}</li>"


PLANS = {"folded": folded}
