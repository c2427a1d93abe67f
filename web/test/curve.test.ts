import { describe, expect, test } from "vitest";
import {
  across,
  atLook,
  bytesAt,
  calls,
  type Curve,
  described,
  down,
  frameOf,
  hasLook,
  joined,
  lookAt,
  nearest,
  open,
  promised,
  ticks,
  wordOf,
} from "../src/playground/curve";
import { GROUPS, group, param } from "./groups";

const point = (look: number | null, bytes: number) => ({ look, bytes, quality: 50, encode: 1 });
const JPG = joined([], [point(70, 20_000), point(50, 10_000), point(90, 60_000)]);
const AVIF = joined([], [point(60, 8_000), point(80, 16_000)]);
const OUTPUT = group(
  "output",
  [
    param("format", { kind: "Choice", options: ["jpg", "png", "avif"] }),
    param("quality", { kind: "Integer", minimum: 1, maximum: 100 }),
    param("look", { kind: "Number", minimum: 30, maximum: 100 }),
    param("lossless", { kind: "Boolean", default: false }),
    param("max_bytes", { kind: "Integer", minimum: 100 }),
    param("effort", { kind: "Integer", minimum: 0, maximum: 9 }),
  ],
  {
    rules: [
      { rule: "NotWhen", choice: "format", options: ["png"], names: ["quality", "look"] },
      { rule: "NotTogether", first: ["look"], second: ["quality"] },
    ],
  },
);
const DECLARED = [...GROUPS.filter(({ key }) => key !== "output"), OUTPUT];

describe("curves", () => {
  test("stand in the order of look, without points that were not scored", () => {
    expect(JPG.map(({ look }) => look)).toEqual([50, 70, 90]);
    expect(joined(JPG, [point(null, 1), point(60, 15_000)]).map(({ look }) => look)).toEqual([50, 60, 70, 90]);
  });

  test("tell the bytes between two points by their ratio", () => {
    expect(bytesAt(JPG, 70)).toBe(20_000);
    expect(bytesAt(JPG, 60)).toBe(Math.round(Math.sqrt(10_000 * 20_000)));
  });

  test.each([40, 91])("tell nothing beyond their ends: %i", (look) => {
    expect(bytesAt(JPG, look)).toBeNull();
    expect(bytesAt([], look)).toBeNull();
  });

  test("are asked for in calls of some seconds: all at once for small pictures, one by one for large ones", () => {
    expect(calls("jpg", 200_000)).toEqual([[70, 50, 85, 35, 60, 92]]);
    for (const format of ["jpg", "avif", "heic"]) {
      const parts = calls(format, 24e6);
      expect(parts.map((looks) => looks.length)).toEqual([1, 1, 1, 1, 1, 1]);
      expect(parts.flat()).toEqual(calls(format, 1).flat());
    }
    expect(calls("avif", 2e6).length).toBeGreaterThan(calls("jpg", 2e6).length);
  });
});

describe("a chart", () => {
  const frame = frameOf({ jpg: JPG, avif: AVIF }) ?? { least: 0, most: 0 };

  test("has room for all points with a look that can be promised", () => {
    for (const { bytes } of [...JPG, ...AVIF]) {
      expect(down(frame, bytes)).toBeGreaterThan(0);
      expect(down(frame, bytes)).toBeLessThan(100);
    }
    expect(frameOf({ jpg: [] })).toBeNull();
    expect(frameOf({ jpg: joined([], [point(12, 10), point(50, 1000)]) })?.least).toBeGreaterThan(900);
  });

  test("tells sizes within it, fewer if there are many", () => {
    expect(ticks({ least: 7_000, most: 66_000 })).toEqual([10_000, 20_000, 50_000]);
    expect(ticks({ least: 700, most: 66_000 })).toEqual([1_000, 10_000]);
    expect(down({ least: 1_000, most: 100_000 }, 10_000)).toBeCloseTo(50);
  });

  test("goes from the least look that can be promised to the best", () => {
    expect([30, 100].map(across)).toEqual([0, 100]);
  });

  test.each([30, 50, 77, 95])("gives the look %i back", (look) => {
    expect(lookAt(across(look))).toBe(look);
  });

  test.each([
    [-20, 30],
    [120, 95],
  ])("gives the look at the end for a place beyond it: %i", (place, look) => {
    expect(lookAt(place)).toBe(look);
  });

  test("finds the nearest curve that has a look", () => {
    const curves = { jpg: JPG, avif: AVIF };
    expect(nearest(curves, frame, 70, down(frame, 20_000))).toBe("jpg");
    expect(nearest(curves, frame, 70, down(frame, 11_000))).toBe("avif");
    expect(nearest(curves, frame, 85, 100)).toBe("jpg");
    expect(nearest(curves, frame, 40, 50)).toBeUndefined();
  });

  test("is described by its ends", () => {
    const curve: Curve = joined([], [point(70, 20)]);
    expect(described({ jpg: JPG, png: [], webp: curve }, String)).toBe(
      "Bytes against look: jpg 10000 at 50 to 60000 at 90; webp 20 at 70",
    );
    expect(described({}, String)).toBe("Bytes against look: nothing yet");
  });
});

describe("requests of points", () => {
  const given = { resize: { width: 80 }, output: { format: "jpg", quality: 60, max_bytes: 900, lossless: true, effort: 3 } };

  test("promise the look only", () => {
    expect(atLook(given, DECLARED, "avif", 72)).toEqual({ resize: { width: 80 }, output: { format: "avif", look: 72, effort: 3 } });
  });

  test("leave the quality open for a curve", () => {
    expect(open(given, DECLARED, "avif")).toEqual({ resize: { width: 80 }, output: { format: "avif", effort: 3 } });
    expect(open({}, DECLARED, "jpg")).toEqual({ output: { format: "jpg" } });
  });

  test.each([
    [{ look: 81 }, 81],
    [{ look: "fine" }, 80],
    [{ quality: "auto" }, 70],
    [{ quality: 80 }, null],
    [{}, null],
  ])("tell what they promise: %j", (output, look) => {
    expect(promised({ output })).toBe(look);
  });

  test("are there for formats with a look", () => {
    expect([hasLook(OUTPUT, "jpg"), hasLook(OUTPUT, "png")]).toEqual([true, false]);
  });

  test.each([
    [40, "poor"],
    [50, "fair"],
    [79, "good"],
    [80, "fine"],
    [95, "same"],
  ])("name the look %i", (look, word) => {
    expect(wordOf(look)).toBe(word);
  });
});
