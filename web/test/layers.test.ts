import { describe, expect, test } from "vitest";
import {
  boxAfter,
  contentOf,
  converted,
  coversAll,
  movedBy,
  newLayer,
  newPicture,
  reordered,
  titleOf,
  wholeOf,
} from "../src/playground/layers";
import type { Values } from "../src/playground/types";

const FRAME = { width: 400, height: 200 };
const TEXT: Values = { text: { text: "Autumn", size: 20 } };

test("a list of layers is ordered", () => {
  const items = ["a", "b", "c"];
  expect(reordered(items, 0, 2)).toEqual(["b", "c", "a"]);
  expect(reordered(items, 2, 1)).toEqual(["a", "c", "b"]);
});

test.each<[Values, string | undefined, string]>([
  [newLayer("text"), "text", "“Text”"],
  [newLayer("shape"), "shape", "Rectangle"],
  [newLayer("gradient"), "gradient", "Gradient"],
  [newPicture("b7c1"), "picture", "Picture"],
  [{ text: { spans: [{ text: "one " }, { text: "two\nthree" }], size: 9 } }, "text", "“one two three”"],
  [{ text: { text: "👩‍🚀".repeat(30), size: 9 } }, "text", `“${"👩‍🚀".repeat(24)}…”`],
  [{}, undefined, "Layer"],
])("%j is %s and is called %s", (layer, content, title) => {
  expect(contentOf(layer)).toBe(content);
  expect(titleOf(layer)).toBe(title);
});

describe("a layer that is moved to the right and down", () => {
  test.each<[Values, Values]>([
    [{}, { gravity: "center", x: 8, y: 4 }],
    [{ x: 10 }, { x: 18, y: 4 }],
    [{ gravity: "top-left", x: 10, y: 10 }, { gravity: "top-left", x: 18, y: 14 }],
    [{ gravity: "bottom-right", x: 10, padding: 5 }, { gravity: "bottom-right", x: 2, y: -4, padding: 5 }],
    [{ gravity: "right" }, { gravity: "right", x: -8, y: 4 }],
    [{ gravity: "bottom", y: "10%" }, { gravity: "bottom", x: 8, y: "8%" }],
    [{ x: "12.5%", y: "1%" }, { x: "14.5%", y: "3%" }],
  ])("%j becomes %j", (place, moved) => {
    expect(movedBy({ ...TEXT, ...place }, { x: 8, y: 4 }, FRAME)).toEqual({ ...TEXT, ...moved });
  });

  test.each<Values>([{}, { x: 3, y: "5%" }, { gravity: "bottom-right", padding: 9 }, { gravity: "left", y: 2 }])(
    "has its box there, from %j",
    (place) => {
      const box = { left: 50, top: 60, width: 70, height: 20 };
      const before = { ...TEXT, ...place };
      const after = movedBy(before, { x: -6, y: 10 }, FRAME);
      const found = boxAfter(box, before, after, FRAME);
      expect(found.left).toBeCloseTo(44);
      expect(found.top).toBeCloseTo(70);
      expect([found.width, found.height]).toEqual([70, 20]);
    },
  );

  test("keeps its box if another corner places it", () => {
    const box = { left: 1, top: 2, width: 3, height: 4 };
    expect(boxAfter(box, { x: 1 }, { x: 9, gravity: "bottom" }, FRAME)).toBe(box);
  });
});

test("boxes cover a picture or leave room beside them", () => {
  expect(coversAll({ left: 0, top: -3, width: 400, height: 203 }, FRAME)).toBe(true);
  expect(coversAll({ left: 0, top: 0, width: 400, height: 200 }, FRAME)).toBe(true);
  expect(coversAll({ left: 1, top: 0, width: 400, height: 200 }, FRAME)).toBe(false);
});

test("lengths change their unit and stay as long", () => {
  expect(wholeOf("width", FRAME)).toBe(400);
  for (const name of ["height", "y"]) expect(wholeOf(name, { width: 100, height: 300 })).toBe(300);
  expect(wholeOf("size", { width: 100, height: 300 })).toBe(100);
  expect(converted(30, 400)).toBe("7.5%");
  expect(converted("7.5%", 400)).toBe(30);
  expect(converted(-1, 300)).toBe("-0.33%");
});
