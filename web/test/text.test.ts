import { expect, test } from "vitest";
import { ago, bytes, change, milliseconds, size } from "../src/shared/text";

test.each([
  [999, "999 B"],
  [1000, "1.00 kB"],
  [123_456, "123 kB"],
  [1_234_567, "1.23 MB"],
])("%d bytes are %s", (count, text) => {
  expect(bytes(count)).toBe(text);
});

test.each([
  [100, 58, "−42 %"],
  [100, 150, "+50 %"],
  [100, 100, "±0 %"],
])("from %d to %d is %s", (from, to, text) => {
  expect(change(from, to)).toBe(text);
});

test.each([
  [0, "just now"],
  [59, "just now"],
  [300, "5 min. ago"],
  [7200, "2 hr. ago"],
  [86400, "yesterday"],
  [-5, "just now"],
])("%d seconds before are %s", (seconds, text) => {
  const now = Date.parse("2030-01-02T12:00:00.000Z");
  expect(ago(new Date(now - 1000 * seconds).toISOString(), now)).toBe(text);
});

test("short times have a decimal", () => {
  expect([milliseconds(1.234), milliseconds(12.34)]).toEqual(["1.2 ms", "12 ms"]);
});

test("a size is width by height", () => {
  expect(size({ width: 3, height: 4 })).toBe("3 × 4");
});
