/** The same result in several formats: how large, how different from the pixels, how slow. */

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
}

/** What is known of each format: its row, or why there is none. */
type Rows = Readonly<Record<string, Row | string>>;

const STILL = ["avif", "webp", "jpg"];
const MOVING = ["webp", "gif", "apng"]; // the others hold one frame only
const REFERENCE = "png";
const DELAY_MS = 400;

export function Formats({ declarations, source, request, result, set }: Props) {
  const { groups, metadata_header: header } = declarations;
  const moves = (result?.facts.input.frames ?? 1) > 1;
  const chosen = result?.facts.output.format;
  const compared = moves ? MOVING : STILL;
  const documents = useMemo(
    () => Object.fromEntries(compared.map((format) => [format, toDocument(withFormat(request, groups, format), groups)])),
    [compared, request, groups],
  );
  const { flatten, background } = valuesOf(request, "output");
  const reference = { ...toDocument(request, groups), output: { format: REFERENCE, flatten, background } };
  const rows = useComparison(source, JSON.stringify({ reference, documents }), header);
  if (typeof rows === "string") return <p class="error">{rows}</p>;
  const largest = Math.max(...Object.values(rows).map((row) => (typeof row === "string" ? 0 : row.bytes)));
  return (
    <table class="formats" aria-busy={compared.some((format) => rows[format] === undefined)}>
      {moves && chosen && !MOVING.includes(chosen) && (
        <caption>The result is the first frame only, because {chosen} holds no animation.</caption>
      )}
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
      <tbody>
        {compared.map((format) => (
          <tr key={format} data-format={format}>
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
        ))}
      </tbody>
    </table>
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

/** Returns what is known so far, or why nothing is. The documents are given as text, which tells if they changed. */
function useComparison(source: Source | null, asked: string, header: string): Rows | string {
  const [rows, setRows] = useState<Rows | string>({});
  useEffect(() => {
    if (!source) return;
    const abort = new AbortController();
    const made = (document: Document) => process(source, document, header, abort.signal);
    const measured = async (document: Document, reference: Luma): Promise<Row> => {
      const { blob, shown, facts } = await made(document);
      const difference = dssim(reference, await lumaOf(shown));
      return { bytes: blob.size, encode: facts.timing.encode, difference };
    };
    const compare = async () => {
      setRows({});
      const { reference, documents } = JSON.parse(asked) as Asked;
      const pixels = await lumaOf((await made(reference)).shown);
      for (const [format, document] of Object.entries(documents)) {
        const row = await measured(document, pixels).catch(told);
        if (abort.signal.aborted) return;
        setRows((before) => ({ ...(typeof before === "string" ? {} : before), [format]: row }));
      }
    };
    const timer = setTimeout(() => {
      compare().catch((reason: unknown) => {
        if (!abort.signal.aborted) setRows(told(reason));
      });
    }, DELAY_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [source, asked, header]);
  return rows;
}
