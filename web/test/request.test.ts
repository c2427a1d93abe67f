import { describe, expect, test } from "vitest";
import {
  allowed,
  before,
  completed,
  type Document,
  fromDocument,
  groupPath,
  groupsOf,
  missingIn,
  storedPresets,
  toDocument,
  withFormat,
  without,
  withValue,
} from "../src/playground/request";
import type { Values } from "../src/playground/types";
import { ADJUST, BLUR, DUOTONE, group, GROUPS, OUTPUT, param, RESIZE, SEPIA, WATERMARK } from "./groups";

const SIZE = { width: 640, height: 480 };
const SCALE = param("size", { minimum: 0.01, maximum: 10, neutral: 1, required: true });
const LESS = param("least", { minimum: 0, maximum: 100, neutral: 0, required: true });
const THICK = param("thick", { kind: "Integer", unit: "pixels", minimum: 1, maximum: 999, required: true });

function roundTrip(document: Document): Document {
  const request = fromDocument(document, GROUPS);
  return toDocument(request, groupsOf(request, GROUPS));
}

describe("documents", () => {
  test.each<Document>([
    {},
    { resize: { width: 80, upscale: true } },
    { resize: { width: 80 }, filter: { sepia: { value: 60 } }, output: { format: "webp" } },
    { filter: [{ blur: { mode: "motion", value: 5 } }, { sepia: { value: 60 } }, { blur: { mode: "gaussian", value: 1 } }] },
  ])("become requests and are written again: %j", (document) => {
    expect(roundTrip(document)).toEqual(document);
  });

  test("in an array of filters in the usual order are written as an object", () => {
    expect(roundTrip({ filter: [{ sepia: { value: 60 } }, { blur: { mode: "gaussian", value: 1 } }] })).toEqual({
      filter: { sepia: { value: 60 }, blur: { mode: "gaussian", value: 1 } },
    });
  });

  test("may call filters by their old name", () => {
    expect(roundTrip({ stylize: { sepia: { value: 60 } } })).toEqual({ filter: { sepia: { value: 60 } } });
  });

  test("stand in the order of application", () => {
    const document = toDocument({ output: { format: "png" }, sepia: { value: 1 }, resize: { width: 9 } }, GROUPS);
    expect(Object.keys(document)).toEqual(["resize", "filter", "output"]);
  });

  test("keep their layers whole and in order, without nulls", () => {
    const layers = [{ gradient: { from: "000000", to: "ffffff" } }, { text: { text: "a", size: "8%" }, x: 3 }];
    const document = { resize: { width: 80 }, layers };
    expect(roundTrip(document)).toEqual(document);
    expect(Object.keys(roundTrip({ output: { quality: 1 }, layers }))).toEqual(["layers", "output"]);
    const given = { layers: [{ text: { text: "a", size: 4, font: null }, x: null }] };
    expect(roundTrip(given)).toEqual({ layers: [{ text: { text: "a", size: 4 } }] });
    expect(missingIn(fromDocument(given, GROUPS), given, GROUPS)).toEqual([]);
    expect(roundTrip({ layers: [] })).toEqual({});
    expect(missingIn(fromDocument({ layers: [3] }, GROUPS), { layers: [3] }, GROUPS)).toEqual(["layers"]);
  });

  test.each<[Document, string[]]>([
    [{ resize: { width: 40 }, border: { width: 8 }, store: { path: "a" } }, ["border.width", "store.path"]],
    [{ filter: [null, { sepia: { value: 40, tone: 2 } }] }, ["filter.sepia.tone"]],
    [{ resize: { width: null, height: 4 } }, []],
  ])("%j has %j more than a page can show", (document, paths) => {
    expect(missingIn(fromDocument(document, GROUPS), document, GROUPS)).toEqual(paths);
  });
});

describe("the order of filters", () => {
  test("of an array comes first, and filters that it has not may follow", () => {
    const request = fromDocument({ filter: [{ blur: { mode: "gaussian", value: 1 } }, { sepia: { value: 60 } }] }, GROUPS);
    const titles = (of: typeof request) => groupsOf(of, GROUPS).map((group) => `${group.title} as ${groupPath(group)}`);
    const [first, second] = ["blur as filter[0].blur", "sepia as filter[1].sepia"];
    const third = "duotone as filter[2].duotone";
    expect(titles(request)).toEqual(["resize as resize", "adjust as adjust", first, second, third, "layers as layers", "output as output"]);
    const left = without(without(request, "1:sepia"), "0:blur");
    expect(titles({ ...left, "3:duotone": { light: "fff" } }).slice(2, -2)).toEqual([
      "duotone as filter[0].duotone",
      "sepia as filter[1].sepia",
      "blur as filter[1].blur",
    ]);
  });

  test("is that of the declarations for an object", () => {
    expect(groupsOf({ sepia: { value: 2 } }, GROUPS)).toBe(GROUPS);
    expect(groupPath(SEPIA)).toBe("filter.sepia");
  });
});

describe("one touch of a control", () => {
  test("fills in what is required", () => {
    expect(withValue({}, BLUR, "value", 100, SIZE)).toEqual({ blur: { mode: "gaussian", value: 100 } });
  });

  test("fills in what the parameter needs", () => {
    expect(withValue({}, RESIZE, "focus_x", 0.2, SIZE)).toEqual({ resize: { focus_x: 0.2, focus_y: 0.5, width: 640 } });
    expect(withValue({}, RESIZE, "mode", "fit", SIZE)).toEqual({ resize: { mode: "fit", width: 640, height: 480 } });
  });

  test("removes what needs a parameter that is unset", () => {
    const request = { resize: { focus_x: 0.2, focus_y: 0.5, width: 640 } };
    expect(withValue(request, RESIZE, "focus_y", null, SIZE)).toEqual({ resize: { width: 640 } });
  });

  test("removes what the parameter excludes", () => {
    expect(withValue({ watermark: { scale: 0.5 } }, WATERMARK, "width", 9, SIZE)).toEqual({ watermark: { width: 9 } });
    expect(withValue({ watermark: { width: 9 } }, WATERMARK, "scale", 0.5, SIZE)).toEqual({ watermark: { scale: 0.5 } });
    for (const given of [{ scale: 0.5 }, { width: 9 }] as Values[]) {
      expect(withValue({ watermark: given }, WATERMARK, "opacity", 0.5, SIZE)).toEqual({ watermark: { ...given, opacity: 0.5 } });
    }
    const request = { output: { format: "webp", lossless: true, quality: 80 } };
    expect(withFormat(request, GROUPS, "jpg")).toEqual({ output: { format: "jpg", quality: 80 } });
    expect(withFormat(request, GROUPS, "png")).toEqual({ output: { format: "png", lossless: true, quality: 80 } });
  });

  test("that goes back to what changes nothing removes the parameter and an idle group", () => {
    const request = { adjust: { exposure: 20, contrast: 5 } };
    expect(withValue({ resize: { width: 9, upscale: true } }, RESIZE, "upscale", false, SIZE)).toEqual({ resize: { width: 9 } });
    const once = withValue(request, ADJUST, "exposure", 0, SIZE);
    expect(once).toEqual({ adjust: { contrast: 5 } });
    expect(withValue(once, ADJUST, "contrast", null, SIZE)).toEqual({});
  });

  test("that unsets a required parameter removes the group", () => {
    expect(withValue({ blur: { mode: "motion", value: 5, angle: 9 } }, BLUR, "mode", null, SIZE)).toEqual({});
  });
});

test("a new object has what it requires", () => {
  expect(completed(BLUR, {}, SIZE)).toEqual({ mode: "gaussian", value: 50 });
  expect(completed(RESIZE, {}, SIZE)).toEqual({ width: 640 });
  expect(completed(group("scale", [SCALE, LESS, THICK]), {}, SIZE)).toEqual({ size: 1, least: 50, thick: 48 });
  expect(completed(DUOTONE, {}, SIZE)).toEqual({ light: "f2c79b", dark: "1d2b64" });
  expect(completed(OUTPUT, {}, SIZE)).toEqual({});
});

test("parameters are offered as far as other values allow them", () => {
  const names = (format: string) => allowed(OUTPUT, { format }).map((item) => item.name);
  expect(names("jpg")).toEqual(["format", "quality"]);
  expect(names("webp")).toEqual(["format", "quality", "lossless"]);
  expect(allowed(BLUR, { mode: "gaussian" }).map((item) => item.name)).toEqual(["mode", "value"]);
});

test("a request stops before a group", () => {
  expect(before({ resize: { width: 9 }, sepia: { value: 1 }, output: { format: "png" } }, GROUPS, "sepia")).toEqual({
    resize: { width: 9 },
  });
});

test.each<[string | null, string[]]>([
  [null, []],
  ["null", []],
  ["[1]", []],
  ["{", []],
  ['{"small": null, "large": {"resize": {"width": 9}}}', ["large"]],
])("presets that the browser kept as %s are %j", (text, names) => {
  expect(Object.keys(storedPresets(text))).toEqual(names);
});
