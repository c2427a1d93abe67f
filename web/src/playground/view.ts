/** Where a picture lies in its window: fitted into it, or at a scale around a point. Lengths are CSS pixels. */

import type { Result, Size } from "./types";

/** A window that shows every pixel of any result. */
export const WHOLE: Size = { width: 16384, height: 16384 };

export interface Point {
  x: number;
  y: number;
}

/** A scale, and the point of the picture in the middle of the window, as shares of width and height. */
export interface View extends Point {
  scale: number;
}

/** A picture in its window. */
export interface Placed extends Point, Size {
  scale: number;
}

const MARGIN = 12;
const LARGEST_SCALE = 16;

/** Returns the scale at which a picture fits the window; small pictures are not enlarged. */
export function fittedScale(picture: Size, room: Size): number {
  const [width, height] = [room.width - 2 * MARGIN, room.height - 2 * MARGIN];
  return Math.max(0.01, Math.min(1, width / picture.width, height / picture.height));
}

/** Returns where a picture lies; without a view it fits the window. */
export function placed(view: View | null, picture: Size, room: Size): Placed {
  const scale = view?.scale ?? fittedScale(picture, room);
  const [width, height] = [picture.width * scale, picture.height * scale];
  return {
    scale,
    width,
    height,
    x: along(room.width, width, view?.x ?? 0.5),
    y: along(room.height, height, view?.y ?? 0.5),
  };
}

/** Returns where a side begins. The middle of the window never leaves the picture. */
function along(room: number, length: number, middle: number): number {
  return room / 2 - Math.min(1, Math.max(0, middle)) * length;
}

/** Returns the view at a scale. The point of the picture under `at` stays where it is. */
export function scaled(view: View | null, scale: number, at: Point, picture: Size, room: Size): View {
  const before = placed(view, picture, room);
  const bounded = Math.min(LARGEST_SCALE, Math.max(fittedScale(picture, room), scale));
  const middle = (place: number, start: number, length: number, window: number, side: number) =>
    (place - start) / length + (window / 2 - place) / (side * bounded);
  return {
    scale: bounded,
    x: middle(at.x, before.x, before.width, room.width, picture.width),
    y: middle(at.y, before.y, before.height, room.height, picture.height),
  };
}

/** Returns the view zoomed by a factor. It never gets smaller than the fitted picture. */
export function zoomed(view: View | null, factor: number, at: Point, picture: Size, room: Size): View | null {
  const scale = placed(view, picture, room).scale * factor;
  return scale <= fittedScale(picture, room) ? null : scaled(view, scale, at, picture, room);
}

/** Returns the view after the picture was dragged. */
export function dragged(view: View | null, by: Point, picture: Size, room: Size): View | null {
  if (!view) return null;
  const { x, y, width, height, scale } = placed(view, picture, room);
  return { scale, x: (room.width / 2 - x - by.x) / width, y: (room.height / 2 - y - by.y) / height };
}

/** Returns the part of the window that the picture covers. */
export function visible({ x, y, width, height }: Placed, room: Size): Point & Size {
  const [left, top] = [Math.max(0, x), Math.max(0, y)];
  return { x: left, y: top, width: Math.min(room.width, x + width) - left, height: Math.min(room.height, y + height) - top };
}

/** Returns the pixels that a view needs of a result: those of the window, or all of them if it is zoomed. */
export function neededPixels(view: View | null, room: Size, density: number): Size {
  if (view) return WHOLE;
  const pixels = (length: number) => Math.max(1, Math.ceil((length - 2 * MARGIN) * density));
  return { width: pixels(room.width), height: pixels(room.height) };
}

/** Returns true if a result has the pixels that a window needs. */
export function covers({ facts: { output }, window: had }: Result, window: Size): boolean {
  const whole = output.frames > 1 || (output.width <= had.width && output.height <= had.height);
  return whole || (had.width >= window.width && had.height >= window.height);
}
