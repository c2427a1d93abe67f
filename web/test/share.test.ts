import { expect, test } from "vitest";
import { hashOf, namedIn, parsed, withoutKey } from "../src/playground/share";

test("what is shared is read again", () => {
  const document = { resize: { width: 64 }, filter: { sepia: { value: 1 } } };
  expect(parsed(hashOf({ kind: "example", name: "day.gif" }, document))).toEqual({ example: "day.gif", document });
  const fetched = { kind: "url", name: "a.jpg", url: "https://example.org/a b.jpg?x=1&y=#2" } as const;
  expect(parsed(hashOf(fetched, {}))).toEqual({ url: fetched.url, document: {} });
});

test.each([{ example: "day.gif" }, { url: "https://example.org/a.jpg" }, {}])("the source that an address names stays in it: %j", (named) => {
  expect(parsed(hashOf(namedIn(named), {}))).toEqual({ ...named, document: {} });
});

test("a file of one's own is not shared", () => {
  expect(hashOf({ kind: "file", name: "secret.jpg" }, {})).toBe("");
});

test.each([
  ['{"resize":{"wid', "The request in the address is not valid JSON. Was the address cut off?"],
  ["null", "The request in the address is not a JSON object."],
  ["[1]", "The request in the address is not a JSON object."],
])("the request %s of an address is told to be wrong", (text, problem) => {
  expect(parsed(`#request=${text}`)).toEqual({ document: {}, problem });
});

test("the key leaves the address, and nothing else does", () => {
  const hash = '#key=isk_1&example=day.gif&request={"flip":{"horizontal":true}}';
  expect(parsed(hash).key).toBe("isk_1");
  const { key, ...rest } = parsed(hash);
  expect(key).toBe("isk_1");
  expect(parsed(withoutKey(hash))).toEqual(rest);
  expect(withoutKey("#key=isk_1")).toBe("");
});
