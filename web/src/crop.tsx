/** A rectangle drawn on the picture, which is the crop. */

import { useRef } from "preact/hooks";
import type { Size, Values } from "./types";

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

interface Props {
  /** The size of the picture before the crop. */
  size: Size;
  values: Values;
  onChange: (values: Values) => void;
}

type Corner = "nw" | "ne" | "sw" | "se";

const CORNERS: Corner[] = ["nw", "ne", "sw", "se"];

/** The crop as a rectangle: drag to draw a new one, its inside to move it, its corners to change it. */
export function CropDrawing({ size, values, onChange }: Props) {
  const area = useRef<HTMLDivElement>(null);
  const drag = useRef<((x: number, y: number) => Box) | null>(null);
  const box = boxOf(values, size);
  const point = (event: PointerEvent): [number, number] => {
    const place = area.current?.getBoundingClientRect();
    if (!place) return [0, 0];
    const share = (at: number, from: number, length: number) => Math.min(1, Math.max(0, (at - from) / length));
    return [
      Math.round(share(event.clientX, place.left, place.width) * size.width),
      Math.round(share(event.clientY, place.top, place.height) * size.height),
    ];
  };
  const start = (event: PointerEvent) => {
    const [x, y] = point(event);
    const role = event.target instanceof HTMLElement ? event.target.dataset.role : undefined;
    area.current?.setPointerCapture(event.pointerId);
    event.preventDefault();
    if (role === "move") drag.current = (to, down) => moved(box, to - x, down - y, size);
    else if (role) {
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

function boxOf(values: Values, size: Size): Box {
  const number = (name: string, usual: number) => (typeof values[name] === "number" ? values[name] : usual);
  const width = Math.min(number("width", size.width), size.width);
  const height = Math.min(number("height", size.height), size.height);
  const x = number("x", Math.round((size.width - width) / 2));
  return { x, y: number("y", Math.round((size.height - height) / 2)), width, height };
}

function moved(box: Box, right: number, down: number, size: Size): Box {
  const within = (at: number, most: number) => Math.min(Math.max(0, at), most);
  return {
    ...box,
    x: within(box.x + right, size.width - box.width),
    y: within(box.y + down, size.height - box.height),
  };
}

function between(x: number, y: number, to: number, down: number): Box {
  return { x: Math.min(x, to), y: Math.min(y, down), width: Math.abs(to - x), height: Math.abs(down - y) };
}
