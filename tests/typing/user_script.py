"""A user's script, right and wrong, which `mypy --strict` and pyright check. It is never run.

A line that ends with ``# error:`` must be refused, with these words in mypy's message.
"""

import imgsvc_core as imgsvc

resize = imgsvc.Resize(width=800, mode="fit", height=600, gravity="top-left")
crop = imgsvc.Crop(mode="ratio", ratio="16:9")
border = imgsvc.Border(size=2, color="f80", background=imgsvc.Color(0, 0, 0))
spec = imgsvc.Spec(resize=resize, crop={"mode": "face"}, filter=imgsvc.Sepia(value=60), border=border)
stacked = imgsvc.Spec(filter=[imgsvc.Halftone(value=3), {"sepia": {"value": 5}}])
width: int | None = resize.width
mode: str = resize.mode
color: imgsvc.Color = border.color
ratio: tuple[float, float] | None = crop.ratio
filters: tuple[imgsvc.Filter, ...] = spec.filter
digest: str = imgsvc.parse({"resize": {"width": 800}}).digest


imgsvc.Resize(width="800")  # error: expected "int | None"
imgsvc.Resize(width=800, mode="cover")  # error: incompatible type "Literal['cover']"
imgsvc.Resize(widht=800)  # error: Unexpected keyword argument "widht"
imgsvc.Sepia()  # error: Missing named argument "value"
imgsvc.Crop(mode="ratio", ratio=1.5)  # error: expected "tuple[float, float] | str | None"
imgsvc.Border(size=2, color=0xFF8800)  # error: expected "Color | str"
imgsvc.Output(format="wepb")  # error: incompatible type "Literal['wepb']"
imgsvc.Spec(resize=crop)  # error: incompatible type "Crop"
imgsvc.Spec(filter="sepia")  # error: incompatible type "str"
resize.width = 5  # error: read-only
imgsvc.Limits(seconds="5")  # error: incompatible type "str"
