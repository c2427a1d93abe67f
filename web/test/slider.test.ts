import { expect, test } from "vitest";
import { fromSlider, rangeOf, STEPS, toSlider, usualOf } from "../src/playground/slider";
import { param } from "./groups";

const SIZE = { width: 640, height: 480 };
const width = param("width", { kind: "Integer", unit: "pixels", minimum: 1, maximum: 16384 });
const bytes = param("max_bytes", { kind: "Integer", unit: "bytes", minimum: 100, maximum: 50_000_000 });
const hue = param("hue", { kind: "Integer", minimum: -180, maximum: 180, neutral: 0, default: 0 });
const opacity = param("opacity", { minimum: 0, maximum: 1, neutral: 1, default: 1 });

test.each([width, bytes, hue, opacity])("both ends of the slider of $name are its range", (item) => {
  const range = rangeOf(item, SIZE);
  expect(fromSlider(range, 0)).toBe(range.minimum);
  expect(fromSlider(range, STEPS)).toBe(range.maximum);
  expect(toSlider(range, range.minimum)).toBe(0);
  expect(toSlider(range, range.maximum)).toBe(STEPS);
});

test.each([width, bytes, hue])("a value of $name comes back from its place", (item) => {
  const range = rangeOf(item, SIZE);
  for (const value of [range.minimum, Math.round((range.minimum + range.maximum) / 3), range.maximum]) {
    expect(fromSlider(range, toSlider(range, value))).toBe(value);
  }
});

test("pixels end where the picture gives them sense", () => {
  expect(rangeOf(width, SIZE)).toMatchObject({ minimum: 1, maximum: 1280 });
  expect(rangeOf(param("x", { kind: "Integer", unit: "pixels", minimum: -9999, maximum: 9999 }), SIZE).minimum).toBe(-640);
});

test("whole numbers have a place each", () => {
  expect(rangeOf(hue, SIZE).steps).toBe(360);
});

test("bytes grow by factors", () => {
  expect(fromSlider(rangeOf(bytes, SIZE), STEPS / 2)).toBe(Math.round(Math.sqrt(100 * 50_000_000)));
});

test("what counts without a value is the default, or the size of the picture", () => {
  expect(usualOf(opacity, {}, SIZE)).toBe(1);
  expect(usualOf(width, {}, SIZE)).toBe(640);
  expect(usualOf(param("quality"), {}, SIZE)).toBeUndefined();
});

test("a length follows the other one that is given", () => {
  expect(usualOf(width, { height: 100 }, SIZE)).toBeUndefined();
  expect(usualOf(width, { width: 100 }, SIZE)).toBe(640);
});
