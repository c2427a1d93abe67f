/** The same result in several formats: their size, difference and time. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { dssim, type Luma, lumaOf } from "./dssim";
import type { Change } from "./history";
import { type Document, toDocument, valuesOf, withFormat } from "./request";
import { told } from "../shared/service";
import { process } from "./calls";
import * as text from "../shared/text";
import type { Declarations, Request, Result, Source } from "./types";

interface Props {
  declarations: Declarations;
  source: Source | null;
  request: Request;
  result: Result | null;
  set: (change: Change) => void;
}

interface Row {
  bytes: number;
  encode: number;
  difference: number;
  /** Sentences about what the format cannot keep. */
  losses: string[];
}

/** The rows by format. A text says why there is no row. */
type Rows = Readonly<Record<string, Row | string>>;

const STILL = ["avif", "webp", "jpg"];
const TRANSPARENT = ["avif", "webp", "png", "jpg"];
const MOVING = ["webp", "gif", "apng", "avif"];
const REFERENCE = "png";
const DELAY_MS = 400;

export function Formats({ declarations, source, request, result, set }: Props) {
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
  const rows = useComparison(source, JSON.stringify({ reference, documents }), header);
  if (typeof rows === "string") return <p class="error">{rows}</p>;
  const largest = Math.max(...Object.values(rows).map((row) => (typeof row === "string" ? 0 : row.bytes)));
  const listed = compared.some((format) => format === result?.facts.output.format);
  return (
    <>
      {!listed && <Losses losses={result?.facts.notes} />}
      <table class="formats" aria-busy={compared.some((format) => rows[format] === undefined)}>
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
              <th scope="row">{format}</th>
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

function RowOfLosses({ row }: { row: Row | string | undefined }) {
  if (typeof row !== "object" || row.losses.length === 0) return null;
  return (
    <tr class="losses">
      <td />
      <td colSpan={5}>
        <Losses losses={row.losses} />
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
      <td class="amount">{row ? text.bytes(row.bytes) : "…"}</td>
      <td class="meter">
        <span style={{ width: row ? `${(row.bytes / largest) * 100}%` : "0" }} />
      </td>
      <td class="amount">{row ? row.difference.toFixed(4) : ""}</td>
      <td class="amount">{row ? text.milliseconds(row.encode) : ""}</td>
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
}

const NO_ROWS: Rows = {};

/** Returns the rows so far, or why there are none. Documents come as text, so that equal ones compare as equal. */
function useComparison(source: Source | null, asked: string, header: string): Rows | string {
  const [found, setFound] = useState<Compared>({ source: null, asked: "", rows: NO_ROWS });
  useEffect(() => {
    if (!source) return;
    const abort = new AbortController();
    const known: Record<string, Row | string> = {};
    const show = (rows: Rows | string) => {
      if (!abort.signal.aborted) setFound({ source, asked, rows });
    };
    const made = (document: Document) => process(source, document, header, abort.signal);
    const measured = async (document: Document, reference: Luma): Promise<Row> => {
      const { blob, shown, facts } = await made(document);
      const difference = dssim(reference, await lumaOf(shown));
      return { bytes: blob.size, encode: facts.timing.encode, difference, losses: facts.notes ?? [] };
    };
    const compare = async () => {
      const { reference, documents } = JSON.parse(asked) as Asked;
      const pixels = await lumaOf((await made(reference)).shown);
      for (const [format, document] of Object.entries(documents)) {
        if (abort.signal.aborted) return;
        known[format] = await measured(document, pixels).catch(told);
        show({ ...known });
      }
    };
    const timer = setTimeout(() => void compare().catch((reason: unknown) => show(told(reason))), DELAY_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [source, asked, header]);
  return found.source === source && found.asked === asked ? found.rows : NO_ROWS;
}
