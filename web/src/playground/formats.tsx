/** The same result in several formats: their size, difference and time. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { dssim, lumaOf } from "./dssim";
import type { Change } from "./history";
import { type Document, toDocument, valuesOf, withFormat } from "./request";
import { told } from "../shared/service";
import { preview } from "./calls";
import * as text from "../shared/text";
import type { Declarations, Other, Request, Result, Source } from "./types";

interface Props {
  declarations: Declarations;
  source: Source | null;
  request: Request;
  result: Result | null;
  set: (change: Change) => void;
  onLook: (other: Other | null) => void;
}

interface Row extends Other {
  /** Undefined until the pixels before encoding are loaded, which takes longest. */
  difference?: number;
}

/** The rows by format. A text says why there is no row. */
type Rows = Readonly<Record<string, Row | string>>;

const STILL = ["avif", "webp", "jpg"];
const TRANSPARENT = ["avif", "webp", "png", "jpg"];
const MOVING = ["webp", "gif", "apng", "avif"];
const REFERENCE = "png";
const DELAY_MS = 400;

export function Formats({ declarations, source, request, result, set, onLook }: Props) {
  const { groups, metadata_header: header } = declarations;
  const { frames = 1, alpha = false } = result?.facts.input ?? {};
  const moves = frames > 1;
  const compared = moves ? MOVING : alpha ? TRANSPARENT : STILL;
  const documents = useMemo(
    () => Object.fromEntries(compared.map((format) => [format, toDocument(withFormat(request, groups, format), groups)])),
    [compared, request, groups],
  );
  const { flatten, background } = valuesOf(request, "output");
  const reference = { ...toDocument(request, groups), output: { format: REFERENCE, flatten, background } };
  useEffect(() => () => onLook(null), [onLook]);
  const { rows, isDone } = useComparison(source, JSON.stringify({ reference, documents }), header);
  if (typeof rows === "string") return <p class="error">{rows}</p>;
  const largest = Math.max(...Object.values(rows).map((row) => (typeof row === "string" ? 0 : row.result.facts.output.bytes)));
  const listed = compared.some((format) => format === result?.facts.output.format);
  return (
    <>
      {!listed && <Losses losses={result?.facts.notes} />}
      <table class="formats" aria-busy={!isDone}>
        <thead>
          <tr>
            <th scope="col">Format</th>
            <th scope="col">Size</th>
            <td />
            <th
              scope="col"
              title={`1 / SSIM − 1 of luma against the pixels before encoding${moves ? ", of the first frame" : ""}; 0 is the same`}
            >
              DSSIM
            </th>
            <th scope="col">Encoding</th>
            <td />
          </tr>
        </thead>
        {compared.map((format) => (
          <tbody key={format} data-format={format}>
            <tr>
              <th scope="row">
                <Look row={rows[format]} format={format} shown={result} onLook={onLook} />
              </th>
              <Cells row={rows[format]} largest={largest} />
              <td>
                <button
                  type="button"
                  aria-pressed={request.output?.format === format}
                  onClick={() => set((request) => withFormat(request, groups, format))}
                >
                  Use
                </button>
              </td>
            </tr>
            <RowOfLosses row={rows[format]} />
          </tbody>
        ))}
      </table>
    </>
  );
}

/** The losses of a result, such as transparency. */
export function Losses({ losses }: { losses: string[] | undefined }) {
  return losses?.length ? <p class="loss">{losses.join(" ")}</p> : null;
}

/** Shows the result in a format beside the original. */
function Look({ row, format, shown, onLook }: LookProps) {
  if (typeof row !== "object") return <>{format}</>;
  return (
    <button
      type="button"
      class="look"
      aria-pressed={shown?.facts.output.format === format}
      title={`Show ${format} beside the original`}
      onClick={() => onLook(row)}
    >
      {format}
    </button>
  );
}

interface LookProps {
  row: Row | string | undefined;
  format: string;
  shown: Result | null;
  onLook: (other: Other | null) => void;
}

function RowOfLosses({ row }: { row: Row | string | undefined }) {
  const losses = typeof row === "object" ? row.result.facts.notes : undefined;
  if (!losses?.length) return null;
  return (
    <tr class="losses">
      <td />
      <td colSpan={5}>
        <Losses losses={losses} />
      </td>
    </tr>
  );
}

function Cells({ row, largest }: { row: Row | string | undefined; largest: number }) {
  if (typeof row === "string") {
    return (
      <td class="refused" colSpan={4}>
        {row}
      </td>
    );
  }
  return (
    <>
      <td class="amount">{row ? text.bytes(row.result.facts.output.bytes) : "…"}</td>
      <td class="meter">
        <span style={{ width: row ? `${(row.result.facts.output.bytes / largest) * 100}%` : "0" }} />
      </td>
      <td class="amount">{row ? (row.difference?.toFixed(4) ?? "…") : ""}</td>
      <td class="amount">{row ? text.milliseconds(row.result.facts.timing.encode) : ""}</td>
    </>
  );
}

interface Asked {
  reference: Document;
  documents: Record<string, Document>;
}

/** The rows for one source and one request. */
interface Compared {
  source: Source | null;
  asked: string;
  rows: Rows | string;
  isDone: boolean;
}

const NOTHING: Compared = { source: null, asked: "", rows: {}, isDone: false };

/** Returns the rows so far, or why there are none. Documents come as text, so that equal ones compare as equal. */
function useComparison(source: Source | null, asked: string, header: string): Pick<Compared, "rows" | "isDone"> {
  const [found, setFound] = useState(NOTHING);
  useEffect(() => {
    if (!source) return;
    const abort = new AbortController();
    const known: Record<string, Row | string> = {};
    const show = (rows: Rows | string, isDone = false) => {
      if (!abort.signal.aborted) setFound({ source, asked, rows, isDone });
    };
    const made = async (document: Document): Promise<Row> => {
      return { document, result: await preview({ source, document }, header, abort.signal) };
    };
    const compare = async () => {
      const { reference, documents } = JSON.parse(asked) as Asked;
      for (const [format, document] of Object.entries(documents)) {
        if (abort.signal.aborted) return;
        known[format] = await made(document).catch(told);
        show({ ...known });
      }
      const pixels = await lumaOf((await made(reference)).result.shown);
      for (const [format, row] of Object.entries(known)) {
        if (typeof row === "string" || abort.signal.aborted) continue;
        known[format] = { ...row, difference: dssim(pixels, await lumaOf(row.result.shown)) };
        show({ ...known });
      }
      show({ ...known }, true);
    };
    const timer = setTimeout(() => void compare().catch((reason: unknown) => show(told(reason), true)), DELAY_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [source, asked, header]);
  return found.source === source && found.asked === asked ? found : NOTHING;
}
