/** Layers: pure functions that begin, order, move and name them. */

import type { Point } from "./view";
import type { LayerBox, Plain, Size, Value, Values } from "./types";

/** What a layer may be. Each layer is one of them. */
export const CONTENTS = ["text", "picture", "shape", "gradient"] as const;
export type Content = (typeof CONTENTS)[number];

const NEW: Readonly<Record<Exclude<Content, "picture">, Values>> = {
  text: { text: { text: "Text", size: "12%", color: "ffffff" } },
  shape: { shape: { kind: "rectangle", color: "ff3300" }, width: "30%", height: "10%" },
  gradient: { gradient: { from: "00000000", to: "cc000000" } },
};
const MOST_TITLE = 24;

/** Returns what a layer is. */
export function contentOf(layer: Values): Content | undefined {
  return CONTENTS.find((content) => layer[content] !== undefined);
}

/** Returns a new layer. */
export function newLayer(content: Exclude<Content, "picture">): Values {
  return NEW[content];
}

/** Returns a new layer of an uploaded picture. */
export function newPicture(id: string): Values {
  return { picture: { id }, width: "25%" };
}

/** Returns a list with the item of a place at another one. */
export function reordered<T>(items: readonly T[], from: number, to: number): T[] {
  return items.toSpliced(from, 1).toSpliced(to, 0, ...items.slice(from, from + 1));
}

/** Returns the name of a layer for people. */
export function titleOf(layer: Values): string {
  const content = contentOf(layer);
  const part = content ? layer[content] : undefined;
  const values = isValues(part) ? part : {};
  if (content === "text") return `“${shortened(lettersOf(values))}”`;
  if (content === "shape") return capitalized(textOf(values.kind) || content);
  return capitalized(content ?? "layer");
}

function lettersOf(text: Values): string {
  const spans = Array.isArray(text.spans) ? (text.spans as readonly Values[]) : [];
  return spans.length ? spans.map((span) => textOf(span.text)).join("") : textOf(text.text);
}

function shortened(text: string): string {
  const line = text.replace(/\s+/g, " ");
  const letters = Array.from(new Intl.Segmenter().segment(line), ({ segment }) => segment);
  return letters.length > MOST_TITLE ? `${letters.slice(0, MOST_TITLE).join("")}…` : line;
}

function textOf(value: Value | undefined): string {
  return typeof value === "string" ? value : "";
}

function capitalized(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

function isValues(value: Value | undefined): value is Values {
  return typeof value === "object" && !Array.isArray(value);
}

/** Returns a layer that was moved on the picture by some of its pixels. Percent stay percent. */
export function movedBy(layer: Values, by: Point, frame: Size): Values {
  const gravity = gravityOf(layer);
  const [right, down] = directions(gravity);
  const placed = layer.gravity === undefined && gravity === "center" ? { ...layer, gravity } : layer;
  return {
    ...placed,
    x: plus(layer.x, right * by.x, frame.width),
    y: plus(layer.y, down * by.y, frame.height),
  };
}

/**
 * Returns where the box of a layer is after its place was changed.
 *
 * It is known at once for a layer that was moved, and stays for others until the service tells.
 */
export function boxAfter(box: LayerBox, before: Values, after: Values, frame: Size): LayerBox {
  const gravity = gravityOf(after);
  if (gravity !== gravityOf(before)) return box;
  const [right, down] = directions(gravity);
  const across = inPixels(after.x, frame.width) - inPixels(before.x, frame.width);
  const below = inPixels(after.y, frame.height) - inPixels(before.y, frame.height);
  return { ...box, left: box.left + right * across, top: box.top + down * below };
}

/** Returns true if a box has no place outside of it where the picture could be dragged. */
export function coversAll({ left, top, width, height }: LayerBox, frame: Size): boolean {
  return left <= 0 && top <= 0 && left + width >= frame.width && top + height >= frame.height;
}

/** Returns the gravity that places a layer: without one, x and y are distances from the top left. */
function gravityOf({ gravity, x, y }: Values): string {
  if (typeof gravity === "string") return gravity;
  return x === undefined && y === undefined ? "center" : "top-left";
}

/** Returns the signs of x and y, which count inwards. */
function directions(gravity: string): [number, number] {
  return [gravity.endsWith("right") ? -1 : 1, gravity.startsWith("bottom") ? -1 : 1];
}

function plus(length: Value | undefined, pixels: number, whole: number): Plain {
  if (!isPercent(length)) return Math.round((typeof length === "number" ? length : 0) + pixels);
  return percent(parseFloat(length) + (100 * pixels) / whole);
}

function inPixels(length: Value | undefined, whole: number): number {
  if (isPercent(length)) return (parseFloat(length) * whole) / 100;
  return typeof length === "number" ? length : 0;
}

/** Returns true if a length is in percent. */
export function isPercent(length: Value | undefined): length is string {
  return typeof length === "string" && length.endsWith("%");
}

/** Returns a length in percent, as requests have it. */
export function percent(value: number): string {
  return `${Number(value.toFixed(2))}%`;
}

/** Returns a length in the other unit. ``whole`` is what 100 percent are. */
export function converted(length: Plain, whole: number): Plain {
  if (isPercent(length)) return Math.round(inPixels(length, whole));
  return typeof length === "number" ? percent((100 * length) / whole) : length;
}

/** Returns what 100 percent of a length are: a side of the picture, or its shorter one. */
export function wholeOf(name: string, frame: Size): number {
  if (name === "width" || name === "x") return frame.width;
  if (name === "height" || name === "y") return frame.height;
  return Math.min(frame.width, frame.height);
}
