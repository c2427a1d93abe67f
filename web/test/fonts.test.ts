import { expect, test } from "vitest";
import { fontText, parsedFont } from "../src/playground/fonts";

const FAMILIES = ["Inter", "Noto Sans", "Noto Sans Thai"];

test.each([
  ["Inter", "Inter", "Regular", false, "Inter"],
  ["inter semibold italic", "Inter", "Semi-Bold", true, "Inter Semi-Bold Italic"],
  ["Noto Sans Thai Extra Light", "Noto Sans Thai", "Extra-Light", false, "Noto Sans Thai Extra-Light"],
  ["Noto Sans 650", "Noto Sans", "650", false, "Noto Sans 650"],
  ["Futura Bold", "Futura Bold", "Regular", false, "Futura Bold"],
])("%s has a family, a weight and a style", (text, family, weight, italic, written) => {
  const font = parsedFont(text, FAMILIES);
  expect(font).toEqual({ family, weight, italic });
  expect(fontText(font)).toBe(written);
});
