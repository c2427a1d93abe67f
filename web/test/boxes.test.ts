import { expect, test } from "vitest";
import { between, boxOf, moved } from "../src/playground/boxes";

const SIZE = { width: 640, height: 480 };

test("a crop without values is the whole picture", () => {
  expect(boxOf({}, SIZE)).toEqual({ x: 0, y: 0, width: 640, height: 480 });
});

test("a crop without a place is centered, and never larger than the picture", () => {
  expect(boxOf({ width: 100, height: 80 }, SIZE)).toEqual({ x: 270, y: 200, width: 100, height: 80 });
  expect(boxOf({ width: 9999 }, SIZE).width).toBe(640);
});

test("a moved rectangle stays in the picture", () => {
  const box = { x: 10, y: 10, width: 100, height: 80 };
  expect(moved(box, 5, -5, SIZE)).toEqual({ ...box, x: 15, y: 5 });
  expect(moved(box, -99, 9999, SIZE)).toEqual({ ...box, x: 0, y: 400 });
});

test("a rectangle is the same from any of its corners", () => {
  const box = { x: 10, y: 20, width: 30, height: 40 };
  expect(between(10, 20, 40, 60)).toEqual(box);
  expect(between(40, 60, 10, 20)).toEqual(box);
  expect(between(40, 20, 10, 60)).toEqual(box);
});
