/** What is shown in place of the result of the request: another one beside the original, or two others. */

import { useCallback, useRef, useState } from "preact/hooks";
import { type Shown, usePreview } from "./preview";
import type { Document } from "./request";
import { bytes } from "../shared/text";
import type { Look, Result, Size, Source } from "./types";

/** What the page shows in place of the result of the request. */
export interface Looking {
  shown: Look | null;
  left: Result | null;
  right: Result | null;
  /** Why it cannot be shown. */
  error: string;
  show: (look: Look | null) => void;
}

interface Looked {
  looking: Looking;
  /** The pictures to show with the request. Its own ones stay until the others are made. */
  shown: Shown | null;
  /** The shown result with its own document. */
  made: Shown | null;
  /** What the pictures are called. */
  labels: [string, string];
  busy: boolean;
}

const ORIGINAL = "Original";
const NO_DOCUMENT: Document = {};

/** Keeps what is looked at as long as the request and the source stay the same. */
export function useLooked(own: Shown | null, source: Source | null, window: Size | null, header: string): Looked {
  const [looked, setLooked] = useState<{ source: Source; document: Document; look: Look } | null>(null);
  const latest = useRef<Shown | null>(null);
  latest.current = own;
  const show = useCallback((look: Look | null) => {
    const of = latest.current;
    setLooked(look && of && { source: of.source, document: of.document, look });
  }, []);
  const look = own && own.source === source && looked?.source === source && looked.document === own.document ? looked.look : null;
  const right = useOther(look && source, look?.right ?? null, window, header);
  const left = useOther(look && source, look?.left ?? null, window, header);
  const found: Looked = {
    looking: { shown: look, left: left.result, right: right.result, error: right.error || left.error, show },
    shown: own,
    made: own,
    labels: [ORIGINAL, "Result"],
    busy: right.busy || left.busy,
  };
  if (!own || !look || !right.result || (look.left && !left.result)) return found;
  const original = left.result ? left.result.shown : own.original;
  const shown = { ...own, result: right.result, original };
  return { ...found, shown, made: { ...shown, document: look.right }, labels: [left.result ? named(left.result) : ORIGINAL, named(right.result)] };
}

/** Returns the result of another document, if there is one. */
function useOther(source: Source | null, document: Document | null, window: Size | null, header: string) {
  const of = document && source;
  const { shown, error, busy } = usePreview(of, document ?? NO_DOCUMENT, window, header, false);
  const result = of && shown?.source === of && shown.document === document ? shown.result : null;
  return { result, error: of && error ? error.message : "", busy: of !== null && busy };
}

function named({ facts: { output } }: Result): string {
  return `${output.format} ${bytes(output.bytes)}`;
}
