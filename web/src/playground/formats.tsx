/** The same result in several formats: their size, look and time, and what each takes for a look. */

import { useEffect, useId, useMemo, useState } from "preact/hooks";
import { Chart } from "./chart";
import { type Row, type Rows, useCurves, useRows, type Wanted } from "./compared";
import { atLook, bytesAt, type Curves, hasLook, LEAST, MOST, open, promised, USUAL, wordOf } from "./curve";
import type { Change } from "./history";
import type { Looking } from "./looked";
import { type Document, toDocument, withFormat } from "./request";
import * as text from "../shared/text";
import type { Declarations, Group, Request, Result, Source } from "./types";

interface Props {
  declarations: Declarations;
  source: Source | null;
  request: Request;
  /** The result that is shown. */
  result: Result | null;
  /** The result of the request. */
  own: Result;
  looking: Looking;
  set: (change: Change) => void;
}

const STILL = ["avif", "jxl", "webp", "jpg"];
const TRANSPARENT = ["avif", "jxl", "webp", "png", "jpg"];
const MOVING = ["webp", "gif", "apng", "avif"];
const USUAL_PAIR = ["jpg", "avif"];

export function Formats({ declarations, source, request, result, own, looking, set }: Props) {
  const { groups } = declarations;
  const { show } = looking;
  const formats = useFormats(groups, own);
  const documents = byFormat(formats, (format) => toDocument(withFormat(request, groups, format), groups));
  const { found: rows, isDone } = useRows(source, JSON.stringify(documents));
  const output = groups.find(({ key }) => key === "output");
  const drawn = formats.filter((format) => output && hasLook(output, format));
  const { width, height, frames } = own.facts.output;
  const wanted: Wanted = {
    documents: byFormat(drawn, (format) => toDocument(open(request, groups, format), groups)),
    pixels: width * height * frames,
    moves: own.facts.input.frames > 1,
  };
  const { found, isDone: isDrawn } = useCurves(source, JSON.stringify(wanted), isDone);
  const [look, setLook] = useState(() => Math.min(MOST, promised(request) ?? USUAL));
  useEffect(() => () => show(null), [show]);
  const use = (format: string, at: number) => {
    setLook(at);
    set((request) => atLook(request, groups, format, at));
  };
  return (
    <div class="compare">
      <div>
        <div class="chart-head">
          <h3>Bytes against look</h3>
          <p role="status">{looking.left && looking.right && toldOf(looking.left, looking.right)}</p>
        </div>
        <Chart
          curves={found.curves}
          asked={askedIn(rows)}
          look={look}
          onChoose={(at, format) => (format === undefined ? setLook(at) : use(format, at))}
        />
        <Pair {...{ formats: drawn, request, groups, looking, look, setLook }} />
        {Object.entries(found.failures).map(([format, failure]) => (
          <p key={format} class="error">
            {format}: {failure}
          </p>
        ))}
      </div>
      <table class="formats" aria-busy={!isDone || !isDrawn}>
        <thead>
          <tr>
            <th scope="col">Format</th>
            <th scope="col">Size</th>
            <th scope="col" title="SSIMULACRA2 against the pixels before encoding: 70 is good, and 90 the same to the eye">
              Look
            </th>
            <th scope="col" class="time">
              Encoding
            </th>
            <td />
            <th scope="col">At look {look}</th>
          </tr>
        </thead>
        {formats.map((format) => (
          <tbody key={format} data-format={format}>
            <tr>
              <th scope="row">
                <span class={`swatch of-${format}`} />
                <LookAt row={rows[format]} format={format} shown={result} onLook={() => show({ left: null, right: documents[format] ?? {} })} />
              </th>
              <Cells row={rows[format]} />
              <td>
                <button
                  type="button"
                  aria-pressed={request.output?.format === format}
                  onClick={() => set((request) => withFormat(request, groups, format))}
                >
                  Use
                </button>
              </td>
              <td>
                <AtLook {...{ format, look, curves: found.curves }} isUsed={request.output?.format === format && promised(request) === look} onUse={use} />
              </td>
            </tr>
            <RowOfLosses row={rows[format]} />
          </tbody>
        ))}
      </table>
    </div>
  );
}

/** Returns the formats to compare, with that of the result. They stay the same as long as these do. */
function useFormats(groups: Group[], own: Result): string[] {
  const { frames, alpha } = own.facts.input;
  const { format } = own.facts.output;
  return useMemo(() => {
    const known = groups.find(({ key }) => key === "output")?.params.find(({ name }) => name === "format")?.options;
    const usual = (frames > 1 ? MOVING : alpha ? TRANSPARENT : STILL).filter((one) => known?.includes(one));
    return usual.includes(format) || !known?.includes(format) ? usual : [...usual, format];
  }, [groups, frames, alpha, format]);
}

function byFormat(formats: string[], document: (format: string) => Document): Record<string, Document> {
  return Object.fromEntries(formats.map((format) => [format, document(format)]));
}

/** Returns the files that the request asks for, as curves of one point. */
function askedIn(rows: Rows): Curves {
  const known = Object.entries(rows).flatMap(([format, row]) => {
    if (typeof row === "string" || row.point.look === null) return [];
    return [[format, [{ ...row.point, look: row.point.look }]]];
  });
  return Object.fromEntries(known) as Curves;
}

interface PairProps {
  formats: string[];
  request: Request;
  groups: Group[];
  looking: Looking;
  look: number;
  setLook: (look: number) => void;
}

/** Chooses a look, and shows two formats at it beside each other. */
function Pair({ formats, request, groups, looking, look, setLook }: PairProps) {
  const [chosen, setChosen] = useState(USUAL_PAIR);
  const [first = "", second = ""] = chosen.every((format) => formats.includes(format)) ? chosen : formats;
  const isShown = Boolean(looking.shown?.left);
  const show = (left: string, right: string, at: number) => {
    const document = (format: string) => toDocument(atLook(request, groups, format, at), groups);
    looking.show({ left: document(left), right: document(right) });
  };
  const choose = (left: string, right: string) => {
    setChosen([left, right]);
    if (isShown) show(left, right, look);
  };
  if (formats.length < 2) return null;
  return (
    <div class="pair">
      <label class="look-slider">
        <span>Look</span>
        <input
          type="range"
          min={LEAST}
          max={MOST}
          value={look}
          aria-valuetext={`${look}, ${wordOf(look)}`}
          onInput={(event) => setLook(event.currentTarget.valueAsNumber)}
          onChange={(event) => {
            if (isShown) show(first, second, event.currentTarget.valueAsNumber);
          }}
        />
        <output>
          {look} {wordOf(look)}
        </output>
      </label>
      <Choice label="Compare" {...{ formats, value: first }} onChoose={(format) => choose(format, second)} />
      <Choice label="with" {...{ formats, value: second }} onChoose={(format) => choose(first, format)} />
      <button type="button" aria-pressed={isShown} onClick={() => (isShown ? looking.show(null) : show(first, second, look))}>
        Side by side
      </button>
      {looking.error && <p class="error">{looking.error}</p>}
    </div>
  );
}

interface ChoiceProps {
  label: string;
  formats: string[];
  value: string;
  onChoose: (format: string) => void;
}

function Choice({ label, formats, value, onChoose }: ChoiceProps) {
  const id = useId();
  return (
    <div class="choice-of-format">
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
        {formats.map((format) => (
          <option key={format}>{format}</option>
        ))}
      </select>
    </div>
  );
}

/** Returns what two results take for their looks. */
function toldOf(left: Result, right: Result): string {
  const [one, other] = [left.facts.output, right.facts.output];
  return `${one.format} ${text.bytes(one.bytes)}, ${other.format} ${text.bytes(other.bytes)} (${text.change(one.bytes, other.bytes)})`;
}

interface AtLookProps {
  format: string;
  look: number;
  curves: Curves;
  isUsed: boolean;
  onUse: (format: string, look: number) => void;
}

/** What a format takes for a look, by its curve. */
function AtLook({ format, look, curves, isUsed, onUse }: AtLookProps) {
  const curve = curves[format];
  const bytes = curve && bytesAt(curve, look);
  if (typeof bytes !== "number") return null;
  return (
    <button type="button" aria-pressed={isUsed} aria-label={`Use ${format} at look ${look}: about ${text.bytes(bytes)}`} onClick={() => onUse(format, look)}>
      ≈ {text.bytes(bytes)}
    </button>
  );
}

/** The losses of a result, such as transparency. */
export function Losses({ losses }: { losses: string[] | undefined }) {
  return losses?.length ? <p class="loss">{losses.join(" ")}</p> : null;
}

interface LookAtProps {
  row: Row | string | undefined;
  format: string;
  shown: Result | null;
  onLook: () => void;
}

/** Shows the result in a format beside the original. */
function LookAt({ row, format, shown, onLook }: LookAtProps) {
  if (typeof row !== "object") return <>{format}</>;
  return (
    <button
      type="button"
      class="look"
      aria-pressed={shown?.facts.output.format === format}
      title={`Show ${format} beside the original`}
      onClick={onLook}
    >
      {format}
    </button>
  );
}

function RowOfLosses({ row }: { row: Row | string | undefined }) {
  const losses = typeof row === "object" ? row.notes : undefined;
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

function Cells({ row }: { row: Row | string | undefined }) {
  if (typeof row === "string") {
    return (
      <td class="refused" colSpan={3}>
        {row}
      </td>
    );
  }
  const point = row?.point;
  return (
    <>
      <td class="amount">{point ? text.bytes(point.bytes) : "…"}</td>
      <td class="amount">{point && (point.look?.toFixed(1) ?? "–")}</td>
      <td class="amount time">{point && text.milliseconds(point.encode)}</td>
    </>
  );
}
