/** Sliders: which values they offer, and where. */

import { pixels } from "./request";
import type { Param, Size, Values } from "./types";

export const STEPS = 1000;

export interface Range {
  minimum: number;
  maximum: number;
  steps: number;
  logarithmic: boolean;
  whole: boolean;
}

/** Returns the range of a slider. Pixels are limited to what makes sense for the picture. */
export function rangeOf(param: Param, size: Size): Range {
  const { minimum = 0, maximum = 1 } = param;
  const whole = param.kind === "Integer";
  const logarithmic = minimum > 0 && maximum / minimum >= 1000 && param.unit !== "pixels";
  const largest = Math.max(size.width, size.height);
  const [most, least] =
    param.unit === "pixels" ? [Math.min(maximum, 2 * largest), Math.max(minimum, -largest)] : [maximum, minimum];
  const steps = whole && !logarithmic ? Math.min(most - least, STEPS) : 200;
  return { minimum: least, maximum: most, steps, logarithmic, whole };
}

/** Returns the value that is used beside those of a group if none is given, as far as the page knows it. */
export function usualOf(param: Param, values: Values, size: Size): number | undefined {
  if (typeof param.default === "number") return param.default;
  if (typeof param.neutral === "number") return param.neutral;
  const other = { width: "height", height: "width" }[param.name];
  const follows = other !== undefined && values[other] !== undefined; // in proportion, which crops and other steps change
  return param.unit === "pixels" && other && !follows ? pixels(param.name, size) : undefined;
}

/** Returns the place of a value on a slider, from 0 to STEPS. */
export function toSlider(range: Range, value: number): number {
  const { minimum, maximum } = range;
  if (range.logarithmic) return (Math.log(value / minimum) / Math.log(maximum / minimum)) * STEPS;
  return ((value - minimum) / (maximum - minimum)) * STEPS;
}

/** Returns the value at a place of a slider. */
export function fromSlider(range: Range, place: number): number {
  const { minimum, maximum } = range;
  const share = place / STEPS;
  const value = range.logarithmic
    ? minimum * (maximum / minimum) ** share
    : minimum + (maximum - minimum) * share;
  return range.whole ? Math.round(value) : Number(value.toPrecision(3));
}
