/** What the service tells of other formats: their files as the request asks for them, and their curves. */

import { useEffect, useState } from "preact/hooks";
import { scores } from "./calls";
import { calls, type Curve, type Curves, joined } from "./curve";
import type { Document } from "./request";
import { told } from "../shared/service";
import type { Scores, Source } from "./types";

export interface Row {
  point: Scores["points"][number];
  notes: string[];
}

/** The rows by format. A text says why there is no row. */
export type Rows = Readonly<Record<string, Row | string>>;

export interface Drawn {
  curves: Curves;
  /** Why a format has no curve, or only a part of it. */
  failures: Readonly<Record<string, string>>;
}

/** What was found for one source and one question. */
interface Answered<Found> {
  source: Source | null;
  asked: string;
  found: Found;
  isDone: boolean;
}

type Show<Found> = (found: Found) => void;

const DELAY_MS = 400;
const NO_ROWS: Rows = {};
const NOTHING_DRAWN: Drawn = { curves: {}, failures: {} };

/** Returns the rows so far. Documents come by format, as text, so that equal ones compare as equal. */
export function useRows(source: Source | null, documents: string) {
  return useAnswer(source, documents, true, NO_ROWS, findRows);
}

/** Returns the curves so far of requests by format. They are computed as long as it is their turn. */
export function useCurves(source: Source | null, opened: string, isTurn: boolean) {
  return useAnswer(source, opened, isTurn, NOTHING_DRAWN, findCurves);
}

/** Returns what is found so far for a source and a question. Both changes cancel what is asked. */
function useAnswer<Found>(
  source: Source | null,
  asked: string,
  isTurn: boolean,
  nothing: Found,
  find: (source: Source, asked: string, signal: AbortSignal, show: Show<Found>) => Promise<void>,
): { found: Found; isDone: boolean } {
  const [answer, setAnswer] = useState<Answered<Found>>({ source: null, asked: "", found: nothing, isDone: false });
  useEffect(() => {
    if (!source || !isTurn) return;
    const abort = new AbortController();
    const change = (next: (before: Answered<Found>) => Answered<Found>) => {
      if (!abort.signal.aborted) setAnswer(next);
    };
    const show = (found: Found) => change(() => ({ source, asked, found, isDone: false }));
    const ask = () => void find(source, asked, abort.signal, show).then(() => change((before) => ({ ...before, isDone: true })));
    const timer = setTimeout(ask, DELAY_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [source, asked, isTurn, find]);
  return answer.source === source && answer.asked === asked ? answer : { found: nothing, isDone: false };
}

async function findRows(source: Source, asked: string, signal: AbortSignal, show: Show<Rows>): Promise<void> {
  const rows: Record<string, Row | string> = {};
  for (const [format, document] of Object.entries(JSON.parse(asked) as Record<string, Document>)) {
    if (signal.aborted) return;
    rows[format] = await scores(source, document, null, signal).then(rowOf, told);
    show({ ...rows });
  }
}

function rowOf({ points: [point], notes }: Scores): Row | string {
  return point ? { point, notes } : "The service told nothing.";
}

/** What to draw: requests by format, and the pixels of their results. */
export interface Wanted {
  documents: Record<string, Document>;
  pixels: number;
  moves: boolean;
}

async function findCurves(source: Source, asked: string, signal: AbortSignal, show: Show<Drawn>): Promise<void> {
  const { documents, pixels, moves } = JSON.parse(asked) as Wanted;
  const curves: Record<string, Curve> = {};
  const failures: Record<string, string> = {};
  show(NOTHING_DRAWN);
  const left = Object.keys(documents).map((format) => ({ format, calls: calls(format, pixels) }));
  for (let round = 0; left.some((one) => round < one.calls.length); round++) {
    for (const one of left) {
      const { format } = one;
      const [looks, document] = [one.calls[round], documents[format]];
      if (signal.aborted) return;
      if (!looks || !document) continue;
      const found = await scores(source, document, looks, signal).catch(told);
      if (typeof found === "string") failures[format] = found;
      else if (!moves || found.notes.length === 0) curves[format] = joined(curves[format] ?? [], found.points);
      if (!curves[format] || failures[format]) one.calls = [];
      show({ curves: { ...curves }, failures: { ...failures } });
    }
  }
}
