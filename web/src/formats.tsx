/** The same result in several formats: how large, how different from the pixels, how slow. */

import { useEffect, useState } from "preact/hooks";
import { dssim, type Luma, lumaOf } from "./dssim";
import type { Document } from "./request";
import { process } from "./service";
import * as text from "./text";
import type { Declarations, Request, Source } from "./types";

interface Props {
  declarations: Declarations;
  source: Source | null;
  request: Request;
  document: Document;
  set: (request: Request) => void;
}

interface Row {
  bytes: number;
  encode: number;
  difference: number;
}

const COMPARED = ["avif", "webp", "jpg"];
const REFERENCE = "png";
const KEPT = ["quality", "metadata", "background"];
const DELAY_MS = 400;

export function Formats({ declarations, source, request, document, set }: Props) {
  const rows = useComparison(source, document, declarations.metadata_header);
  if (typeof rows === "string") return <p class="error">{rows}</p>;
  const largest = Math.max(...Object.values(rows).map((row) => row.bytes));
  return (
    <table class="formats" aria-busy={Object.keys(rows).length < COMPARED.length}>
      <thead>
        <tr>
          <th scope="col">Format</th>
          <th scope="col">Size</th>
          <td />
          <th scope="col" title="1 / SSIM − 1 of luma against the pixels before encoding; 0 is the same">
            DSSIM
          </th>
          <th scope="col">Encoding</th>
          <td />
        </tr>
      </thead>
      <tbody>
        {COMPARED.map((format) => {
          const row = rows[format];
          return (
            <tr key={format} data-format={format}>
              <th scope="row">{format}</th>
              <td class="amount">{row ? text.bytes(row.bytes) : "…"}</td>
              <td class="meter">
                <span style={{ width: row ? `${(row.bytes / largest) * 100}%` : "0" }} />
              </td>
              <td class="amount">{row ? row.difference.toFixed(4) : ""}</td>
              <td class="amount">{row ? text.milliseconds(row.encode) : ""}</td>
              <td>
                <button
                  type="button"
                  aria-pressed={request.output?.format === format}
                  onClick={() => set({ ...request, output: { ...kept(request.output ?? {}), format } })}
                >
                  Use
                </button>
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

/** Returns the rows that are known so far, or why there are none. */
function useComparison(source: Source | null, document: Document, header: string): Record<string, Row> | string {
  const [rows, setRows] = useState<Record<string, Row> | string>({});
  const asked = JSON.stringify({ ...document, output: kept((document.output ?? {}) as Document) });
  useEffect(() => {
    if (!source) return;
    const abort = new AbortController();
    const compare = async () => {
      setRows({});
      const base = JSON.parse(asked) as Document & { output: Document };
      const made = (format: string) => {
        const output = format === REFERENCE ? { format } : { ...base.output, format };
        return process(source, { ...base, output }, header, abort.signal);
      };
      const reference: Luma = await lumaOf((await made(REFERENCE)).shown);
      for (const format of COMPARED) {
        const { blob, shown, facts } = await made(format);
        const difference = dssim(reference, await lumaOf(shown));
        if (abort.signal.aborted) return;
        const row = { bytes: blob.size, encode: facts.timing.encode ?? 0, difference };
        setRows((before) => ({ ...(typeof before === "string" ? {} : before), [format]: row }));
      }
    };
    const timer = setTimeout(() => {
      compare().catch((reason: unknown) => {
        if (!abort.signal.aborted) setRows(reason instanceof Error ? reason.message : String(reason));
      });
    }, DELAY_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [source, asked, header]);
  return rows;
}

/** Returns the parameters of the output that every compared format has. */
function kept<T>(output: Record<string, T>): Record<string, T> {
  return Object.fromEntries(Object.entries(output).filter(([name]) => KEPT.includes(name)));
}
