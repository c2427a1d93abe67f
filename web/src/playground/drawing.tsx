/** Drawing on the picture: the rectangle of a crop, or the point that gravity keeps. */

import { useRef } from "preact/hooks";
import { between, type Box, boxOf, moved } from "./boxes";
import { allowed } from "./request";
import type { Group, Size, Values } from "./types";

/** A shape to draw, and the operation whose parameters it sets. */
export interface Drawing {
  group: string;
  what: "box" | "point";
}

interface Props {
  /** The size of the picture before the crop. */
  size: Size;
  values: Values;
  onChange: (values: Values) => void;
}

/** Returns the shapes that can be drawn for a group with its current values. */
export function drawings(group: Group, values: Values): Drawing[] {
  const names = new Set(allowed(group, values).map((param) => param.name));
  const offers: [Drawing["what"], string[]][] = [
    ["box", ["x", "y", "width", "height"]],
    ["point", ["focus_x", "focus_y"]],
  ];
  const place = group.key === "watermark" ? [] : offers;
  return place
    .filter(([, needed]) => needed.every((name) => names.has(name)))
    .map(([what]) => ({ group: group.key, what }));
}

type Corner = "nw" | "ne" | "sw" | "se";

const CORNERS: Corner[] = ["nw", "ne", "sw", "se"];

export function DrawingArea({ drawing, ...props }: Props & { drawing: Drawing }) {
  return drawing.what === "box" ? <BoxDrawing {...props} /> : <PointDrawing {...props} />;
}

/** The point as a cross: click, or drag it. */
function PointDrawing({ size, values, onChange }: Props) {
  const area = useRef<HTMLDivElement>(null);
  const number = (name: string) => (typeof values[name] === "number" ? values[name] : 0.5);
  const set = (event: PointerEvent) => {
    const [x, y] = pointOf(event, area.current, size);
    const share = (at: number, length: number) => Math.round((at / length) * 1000) / 1000;
    onChange({ ...values, gravity: "focus", focus_x: share(x, size.width), focus_y: share(y, size.height) });
  };
  return (
    <div
      ref={area}
      class="crop"
      role="application"
      aria-label="Point to keep, picked with the pointer; the fields beside it take numbers"
      onPointerDown={(event) => {
        area.current?.setPointerCapture(event.pointerId);
        set(event);
      }}
      onPointerMove={(event) => {
        if (area.current?.hasPointerCapture(event.pointerId)) set(event);
      }}
    >
      <span class="point" style={{ left: `${number("focus_x") * 100}%`, top: `${number("focus_y") * 100}%` }} />
    </div>
  );
}

/** Returns the pixel under the pointer. */
function pointOf(event: PointerEvent, area: HTMLElement | null, size: Size): [number, number] {
  const place = area?.getBoundingClientRect();
  if (!place) return [0, 0];
  const share = (at: number, from: number, length: number) => Math.min(1, Math.max(0, (at - from) / length));
  return [
    Math.round(share(event.clientX, place.left, place.width) * size.width),
    Math.round(share(event.clientY, place.top, place.height) * size.height),
  ];
}

/** The crop as a rectangle. A drag draws a new one, moves it by its inside, or resizes it by a corner. */
function BoxDrawing({ size, values, onChange }: Props) {
  const area = useRef<HTMLDivElement>(null);
  const drag = useRef<((x: number, y: number) => Box) | null>(null);
  const box = boxOf(values, size);
  const point = (event: PointerEvent) => pointOf(event, area.current, size);
  const start = (event: PointerEvent) => {
    const [x, y] = point(event);
    const role = event.target instanceof HTMLElement ? event.target.dataset.role : undefined;
    area.current?.setPointerCapture(event.pointerId);
    event.preventDefault();
    const whole = box.width === size.width && box.height === size.height;
    if (role === "move" && !whole) drag.current = (to, down) => moved(box, to - x, down - y, size);
    else if (role && role !== "move") {
      const fixed = [role.includes("w") ? box.x + box.width : box.x, role.includes("n") ? box.y + box.height : box.y];
      drag.current = (to, down) => between(fixed[0] ?? 0, fixed[1] ?? 0, to, down);
    } else drag.current = (to, down) => between(x, y, to, down);
  };
  const place = {
    left: `${(box.x / size.width) * 100}%`,
    top: `${(box.y / size.height) * 100}%`,
    width: `${(box.width / size.width) * 100}%`,
    height: `${(box.height / size.height) * 100}%`,
  };
  return (
    <div
      ref={area}
      class="crop"
      role="application"
      aria-label="Crop, drawn with the pointer; the fields beside it take numbers"
      onPointerDown={start}
      onPointerMove={(event) => {
        if (!drag.current) return;
        const next = drag.current(...point(event));
        if (next.width > 0 && next.height > 0) onChange({ ...next });
      }}
      onPointerUp={() => (drag.current = null)}
    >
      <div class="crop-box" data-role="move" style={place}>
        <span class="crop-size">
          {box.width} × {box.height}
        </span>
        {CORNERS.map((corner) => (
          <span key={corner} class={`crop-corner ${corner}`} data-role={corner} />
        ))}
      </div>
    </div>
  );
}
