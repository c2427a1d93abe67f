import { describe, expect, test } from "vitest";
import { found, label, OTHER_WORDS } from "../src/playground/search";
import type { Group, Param } from "../src/playground/types";
import { group, OUTPUT, param } from "./groups";

const ADJUST = group("adjust", [param("saturation", { doc: "Saturation of all colors." }), param("hue")], { title: "Adjust" });
const MASK = group("mask", [param("shape"), param("radius", { doc: "Radius of rounded corners." })], { title: "Mask" });

function names(search: string, item = ADJUST): string[] {
  return found([item], search, (group) => group.params).flatMap(({ params }) => params.map((one) => one.name));
}

describe("a search", () => {
  test.each([
    ["sharpness", "adjust", "sharpen"],
    ["noise", "adjust", "sharpen"],
    ["frames", "output", "format"],
    ["animation", "output", "format"],
    ["square", "crop", "ratio"],
    ["square", "canvas", "ratio"],
    ["b&w", "adjust", "saturation"],
    ["contain", "resize", "mode"],
    ["chroma", "output", "subsampling"],
    ["vintage", "sepia", "value"],
    ["drop shadow", "layers", "text"],
  ])("for %s finds %s.%s", (search, key, name) => {
    const item = group(key, [param(name), param("other")], { title: key });
    expect(names(search, item)).toContain(name);
  });

  test.each(["", "  ", "adj", "ADJUST"])("for '%s' finds the whole group", (search) => {
    expect(names(search)).toEqual(["saturation", "hue"]);
  });

  test.each([
    ["grayscale", ["saturation"]],
    ["greyscale", ["saturation"]],
    ["black and white", ["saturation"]],
    ["colour", ["saturation"]],
    ["adjust hue", ["hue"]],
    ["nothing", []],
  ])("for '%s' finds %j", (search, expected) => {
    expect(names(search)).toEqual(expected);
  });

  test("finds words in any order, and a mask by round corners", () => {
    expect(names("round corners", MASK)).toEqual(["shape", "radius"]);
    expect(names("corners radius", MASK)).toEqual(["radius"]);
  });

  test("finds options", () => {
    expect(names("webp", OUTPUT)).toEqual(["format"]);
    expect(names("jpeg", OUTPUT)).toEqual(["format"]);
  });

  test("finds filters of an array", () => {
    expect(names("avatar", { ...MASK, key: "3:mask" })).toEqual(["shape", "radius"]);
  });

  test("shows the groups that it names before others, and no group without an offered parameter", () => {
    const border = group("border", [param("background", { doc: "White if the mask has no alpha." })], { title: "Border" });
    const keys = (offered: (item: Group) => Param[]) => found([border, ADJUST, MASK], "mask", offered).map((one) => one.group.key);
    expect(keys((item) => item.params)).toEqual(["mask", "border"]);
    expect(keys((item) => (item === MASK ? [] : item.params))).toEqual(["border"]);
  });
});

test("other words stand in the language that searches are turned into", () => {
  expect(Object.values(OTHER_WORDS).filter((words) => /colour|centre/.test(words))).toEqual([]);
});

test("a parameter is called by its name", () => {
  expect(label({ name: "max_bytes" })).toBe("Max bytes");
});
