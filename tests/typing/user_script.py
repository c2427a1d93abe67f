"""A user's script, right and wrong, which `mypy --strict` and pyright check. It is never run.

A line that ends with ``# error:`` must be refused, with these words in mypy's message.
"""

from pathlib import Path

import numpy as np

import imgsvc_batch
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

data: bytes = imgsvc.process("in.jpg", spec).data
written: None = imgsvc.process(Path("in.jpg"), {"flip": {"horizontal": True}}, "out.webp").data
named: None = imgsvc.process(b"...", target=Path("out.webp"), limits=imgsvc.Limits(seconds=5)).data
pixels = imgsvc.process(np.zeros((4, 4, 3), np.uint8), spec)
short: bytes = imgsvc.process("in.jpg", imgsvc.Resize(width=300)).data
listed = imgsvc.process("in.jpg", [resize, imgsvc.Sepia(60), imgsvc.Output(format="webp")], "out.webp")
facts: tuple[str, int] = pixels.output.format, imgsvc.inspect("in.jpg").width
explained: imgsvc.Plan = imgsvc.explain(spec, imgsvc.inspect(b"..."))
for_file: imgsvc.Plan = imgsvc.explain([resize], Path("in.jpg"))
many: dict[str, bytes] = {name: made.data for name, made in imgsvc.process_variants("a", {"s": spec}).items()}
written_variants: dict[str, None] = {
    name: made.data for name, made in imgsvc.process_variants("a", {"s": resize}, "a-{name}.webp").items()
}
array: np.ndarray = pixels.to_numpy()
later_array: np.ndarray = imgsvc.to_numpy(Path("in.jpg"), resize, threads=1)
sheet: bytes = imgsvc.contact_sheet(["a.jpg", b"..."], columns=2, output=imgsvc.Output(format="png")).data
on_disk: None = imgsvc.contact_sheet(["a.jpg"], "sheet.jpg", background="fff").data
again: bytes = imgsvc.process(pixels, imgsvc.Sepia(value=5)).data
score: float = imgsvc.compare("a.jpg", pixels).ssimulacra2
source: imgsvc.Source = Path("in.jpg")
place: imgsvc.Target = "out.webp"
with imgsvc.WorkerPool(2) as pool:
    worked: np.ndarray = pool.submit(imgsvc.to_numpy, source).result()


def later(target: str | None) -> bytes | None:
    return imgsvc.process("in.jpg", spec, target).data


async def awaited(pool: imgsvc.WorkerPool) -> bytes:
    written: None = (await imgsvc.aprocess(b"...", spec, "out.webp", pool=pool)).data
    assert written is None
    await imgsvc.aprocess(b"...", isolted=False)  # error: No overload variant of "aprocess" matches
    return (await imgsvc.aprocess(b"...", resize, isolated=False, limits=imgsvc.Limits(seconds=5))).data


imgsvc.Output(facts=["palette", "lqip"])
imgsvc.Output(facts=["colors"])  # error: expected "Literal['blurhash',
colors: list[str] = [color["color"] for color in imgsvc.palette("in.jpg")]
gray: object = imgsvc.inspect("in.jpg", facts=["gray"]).facts["gray"]
imgsvc.Resize(width="800")  # error: expected "int | None"
imgsvc.Resize(width=800, mode="cover")  # error: incompatible type "Literal['cover']"
imgsvc.Resize(widht=800)  # error: Unexpected keyword argument "widht"
imgsvc.Sepia()  # error: Missing positional argument "value"
imgsvc.Resize(300)  # error: Too many positional arguments
imgsvc.Sepia(60, 5)  # error: Too many arguments
imgsvc.Crop(mode="ratio", ratio=1.5)  # error: expected "tuple[float, float] | str | None"
imgsvc.Border(size=2, color=0xFF8800)  # error: expected "Color | str"
imgsvc.Output(format="wepb")  # error: incompatible type "Literal['wepb']"
imgsvc.Spec(resize=crop)  # error: incompatible type "Crop"
imgsvc.Spec(filter="sepia")  # error: incompatible type "str"
resize.width = 5  # error: read-only
imgsvc.process("in.jpg", spec).data.decode()
imgsvc.process("in.jpg", spec, "out.webp").data.decode()  # error: "None" has no attribute "decode"
imgsvc.process("in.jpg", ["sepia"])  # error: expected "Operation"
imgsvc.process("in.jpg", spec, "out.webp").to_numpy()  # error: Invalid self argument
imgsvc.contact_sheet("in.jpg", colums=2)  # error: No overload variant of "contact_sheet" matches
imgsvc.process(5)  # error: No overload variant of "process" matches
imgsvc.process("in.jpg", spec, 5)  # error: No overload variant of "process" matches
imgsvc.inspect(None)  # error: incompatible type "None"
imgsvc.Limits(seconds="5")  # error: incompatible type "str"
imgsvc_batch.run("photos", Path("small"), {"thumb": {"resize": {"width": 200}}}, workers=2, force=True)
imgsvc_batch.run("photos", "small", {"thumb": spec}, wrkers=2)  # error: Unexpected keyword argument "wrkers"
imgsvc_batch.run("photos", "small", {"thumb": spec}, workers="2")  # error: incompatible type "str"
imgsvc_batch.Batch(source="photos", target="small", variants=3)  # error: incompatible type "int"
