import type { Result, Size } from "../src/playground/types";
import { describe, expect, test } from "vitest";
import { covers, dragged, fittedScale, neededPixels, placed, scaled, type View, visible, WHOLE, zoomed } from "../src/playground/view";

const ROOM = { width: 824, height: 424 };
const LARGE = { width: 1600, height: 1600 };
const SMALL = { width: 100, height: 80 };
const CENTER = { x: 412, y: 212 };

/** Returns the share of the picture that lies at a point of the window. */
function shareAt(view: View | null, at: { x: number; y: number }): [number, number] {
  const box = placed(view, LARGE, ROOM);
  return [(at.x - box.x) / box.width, (at.y - box.y) / box.height];
}

describe("a fitted picture", () => {
  test("is centered and leaves a margin", () => {
    expect(placed(null, LARGE, ROOM)).toEqual({ scale: 0.25, width: 400, height: 400, x: 212, y: 12 });
  });

  test("fits by its longer side", () => {
    expect(fittedScale({ width: 1600, height: 90 }, ROOM)).toBe(0.5);
  });

  test("is not enlarged", () => {
    expect(fittedScale(SMALL, ROOM)).toBe(1);
  });

  test("does not move", () => {
    expect(dragged(null, { x: 50, y: 50 }, LARGE, ROOM)).toBeNull();
  });
});

describe("zoom", () => {
  test.each([
    [1, 1.5, { x: 220, y: 20 }],
    [1, 3, { x: 600, y: 400 }],
    [4, 8, { x: 500, y: 100 }],
    [4, 0.5, { x: 430, y: 200 }],
  ])("from %d by %d keeps what is under the pointer at %j", (start, factor, at) => {
    const view = zoomed(null, start, CENTER, LARGE, ROOM);
    const [x, y] = shareAt(view, at);
    const [newX, newY] = shareAt(zoomed(view, factor, at, LARGE, ROOM), at);
    expect(newX).toBeCloseTo(x, 9);
    expect(newY).toBeCloseTo(y, 9);
  });

  test("ends at the fitted picture and at 1600 %", () => {
    const view = scaled(null, 2, CENTER, LARGE, ROOM);
    expect(zoomed(view, 0.001, CENTER, LARGE, ROOM)).toBeNull();
    expect(zoomed(view, 1000, CENTER, LARGE, ROOM)?.scale).toBe(16);
    expect(zoomed(null, 0.5, CENTER, LARGE, ROOM)).toBeNull();
  });

  test("in the middle leaves a small picture there", () => {
    expect(placed(scaled(null, 2, CENTER, SMALL, ROOM), SMALL, ROOM)).toMatchObject({ x: 312, y: 132, width: 200 });
  });
});

describe("a drag", () => {
  test("moves the picture with the pointer", () => {
    const view = scaled(null, 2, CENTER, LARGE, ROOM);
    const [before, after] = [placed(view, LARGE, ROOM), placed(dragged(view, { x: 30, y: -20 }, LARGE, ROOM), LARGE, ROOM)];
    expect([after.x - before.x, after.y - before.y]).toEqual([30, -20]);
  });

  test("can end with a corner in the middle", () => {
    expect(placed({ scale: 1, x: 0, y: 0 }, LARGE, ROOM)).toMatchObject(CENTER);
    expect(placed({ scale: 1, x: 1, y: 1 }, LARGE, ROOM)).toMatchObject({ x: 412 - 1600, y: 212 - 1600 });
  });

  test("ends with an edge in the middle, and comes back at once", () => {
    let view: View | null = scaled(null, 2, CENTER, LARGE, ROOM);
    view = dragged(view, { x: 99_999, y: 0 }, LARGE, ROOM);
    expect(placed(view, LARGE, ROOM).x).toBe(412);
    view = dragged(dragged(view, { x: 50, y: 0 }, LARGE, ROOM), { x: -10, y: 0 }, LARGE, ROOM);
    expect(placed(view, LARGE, ROOM).x).toBeCloseTo(402, 9);
  });
});

test("the visible part of a picture lies in the window at any zoom", () => {
  for (const scale of [0.25, 0.5, 1, 4, 16]) {
    const view = scaled(null, scale, { x: 700, y: 30 }, LARGE, ROOM);
    const part = visible(placed(view, LARGE, ROOM), ROOM);
    expect(part.x).toBeGreaterThanOrEqual(0);
    expect(part.y).toBeGreaterThanOrEqual(0);
    expect(part.x + part.width).toBeLessThanOrEqual(ROOM.width);
    expect(part.y + part.height).toBeLessThanOrEqual(ROOM.height);
    expect(Math.min(part.width, part.height)).toBeGreaterThan(200);
  }
  expect(visible(placed(scaled(null, 4, CENTER, LARGE, ROOM), LARGE, ROOM), ROOM)).toEqual({ x: 0, y: 0, ...ROOM });
});

describe("the pixels that a view needs", () => {
  test("are those of the window without its margin", () => {
    expect(neededPixels(null, ROOM, 1)).toEqual({ width: 800, height: 400 });
    expect(neededPixels(null, ROOM, 1.5)).toEqual({ width: 1200, height: 600 });
  });

  test("are all pixels if it is zoomed", () => {
    expect(neededPixels({ scale: 1, x: 0.5, y: 0.5 }, ROOM, 1)).toEqual(WHOLE);
  });

  function result(output: Size, window: Size, frames = 1): Result {
    return { facts: { output: { ...output, frames } }, window } as Result;
  }

  test.each([
    ["the same window", result(LARGE, ROOM), ROOM, true],
    ["a larger window", result(LARGE, ROOM), { width: 900, height: 424 }, false],
    ["all pixels of a reduced picture", result(LARGE, ROOM), WHOLE, false],
    ["all pixels of a small one", result(SMALL, ROOM), WHOLE, true],
    ["all pixels of one that is reduced by its height", result({ width: 100, height: 1600 }, ROOM), WHOLE, false],
    ["all pixels of one that fills it", result(ROOM, ROOM), WHOLE, true],
    ["all pixels of an animation", result(LARGE, ROOM, 3), WHOLE, true],
  ])("may be those of the result: %s", (_, made, window, isEnough) => {
    expect(covers(made, window)).toBe(isEnough);
  });
});
