/** Undo and redo of requests. */

import { useCallback, useReducer } from "preact/hooks";
import type { Request } from "./types";

export interface State {
  past: Request[];
  present: Request;
  future: Request[];
  touched: string;
  at: number;
}

export type Change = (request: Request) => Request;

type Action = { kind: "set"; change: Change; touched: string; at: number } | { kind: "undo" } | { kind: "redo" };

const MOST = 200;
const ONE_EDIT_MS = 800;

/** Returns the state of a history that begins with a request. */
export function begun(present: Request): State {
  return { past: [], present, future: [], touched: "", at: 0 };
}

/** Returns the state after an action. */
export function reduce(state: State, action: Action): State {
  const { past, present, future } = state;
  const last = past[past.length - 1];
  const next = future[0];
  switch (action.kind) {
    case "set": {
      const { at } = action;
      // A drag of a slider sets many values. Together they are one step.
      const same = action.touched !== "" && action.touched === state.touched && at - state.at < ONE_EDIT_MS;
      const kept = same ? past : [...past.slice(-MOST), present];
      return { past: kept, present: action.change(present), future: [], touched: action.touched, at };
    }
    case "undo":
      if (!last) return state;
      return { past: past.slice(0, -1), present: last, future: [present, ...future], touched: "", at: 0 };
    case "redo":
      if (!next) return state;
      return { past: [...past, present], present: next, future: future.slice(1), touched: "", at: 0 };
  }
}

export interface History {
  request: Request;
  /** Changes the current request. Quick changes of the same `touched` parameter are one step. */
  set: (change: Change, touched?: string) => void;
  undo: () => void;
  redo: () => void;
  canUndo: boolean;
  canRedo: boolean;
}

export function useHistory(initial: Request): History {
  const [state, dispatch] = useReducer(reduce, initial, begun);
  return {
    request: state.present,
    set: useCallback((change: Change, touched = "") => dispatch({ kind: "set", change, touched, at: Date.now() }), []),
    undo: useCallback(() => dispatch({ kind: "undo" }), []),
    redo: useCallback(() => dispatch({ kind: "redo" }), []),
    canUndo: state.past.length > 0,
    canRedo: state.future.length > 0,
  };
}
