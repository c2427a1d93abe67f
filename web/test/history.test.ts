import { expect, test } from "vitest";
import { begun, reduce, type State } from "../src/playground/history";

function set(state: State, width: number, touched: string, at: number): State {
  return reduce(state, { kind: "set", change: () => ({ resize: { width } }), touched, at });
}

test("every change can be undone and done again", () => {
  const first = set(begun({}), 1, "resize-width", 0);
  const second = set(first, 2, "", 10_000);
  const undone = reduce(second, { kind: "undo" });
  expect(undone.present).toEqual({ resize: { width: 1 } });
  expect(reduce(undone, { kind: "undo" }).present).toEqual({});
  expect(reduce(undone, { kind: "redo" }).present).toEqual({ resize: { width: 2 } });
  expect(set(undone, 3, "", 20_000).future).toEqual([]);
});

test("one drag of a slider is one step", () => {
  let state = begun({});
  for (let at = 0; at < 10; at++) state = set(state, at, "resize-width", 100 * at);
  expect(state.past).toEqual([{}]);
  expect(set(state, 11, "resize-width", 5000).past).toHaveLength(2);
  expect(set(state, 11, "resize-height", 1000).past).toHaveLength(2);
});

test("a history has an end", () => {
  let state = begun({});
  for (let at = 0; at < 500; at++) state = set(state, at, "", 0);
  expect(state.past).toHaveLength(201);
  expect(reduce(begun({}), { kind: "undo" })).toEqual(begun({}));
});
