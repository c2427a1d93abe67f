/** Rectangles that are drawn on a picture, in its pixels. */

import type { Size, Values } from "./types";

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Returns the rectangle of a crop. Without a size it is as large as possible, without a place it is centered. */
export function boxOf(values: Values, size: Size): Box {
  const number = (name: string, usual: number) => (typeof values[name] === "number" ? values[name] : usual);
  const width = Math.min(number("width", size.width), size.width);
  const height = Math.min(number("height", size.height), size.height);
  const x = number("x", Math.round((size.width - width) / 2));
  return { x, y: number("y", Math.round((size.height - height) / 2)), width, height };
}

/** Moves a rectangle within the picture. */
export function moved(box: Box, right: number, down: number, size: Size): Box {
  const within = (at: number, most: number) => Math.min(Math.max(0, at), most);
  return {
    ...box,
    x: within(box.x + right, size.width - box.width),
    y: within(box.y + down, size.height - box.height),
  };
}

/** Returns the rectangle between two corners. */
export function between(x: number, y: number, to: number, down: number): Box {
  return { x: Math.min(x, to), y: Math.min(y, down), width: Math.abs(to - x), height: Math.abs(down - y) };
}
