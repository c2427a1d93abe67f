/** The tabs below the picture: times and plan of the result, other formats, the request as code. */

import { useId, useState } from "preact/hooks";
import { Code } from "./code";
import { Formats, Losses } from "./formats";
import type { Change } from "./history";
import type { Looking } from "./looked";
import { Plan } from "./plan";
import type { Shown } from "./preview";
import type { Document } from "./request";
import * as text from "../shared/text";
import type { Declarations, Request, Result, Source } from "./types";

interface Props {
  declarations: Declarations;
  source: Source | null;
  request: Request;
  document: Document;
  /** The result of the request. */
  own: Shown | null;
  shown: Shown | null;
  looking: Looking;
  /** Why the service refuses the request. */
  wrong: string | undefined;
  set: (change: Change) => void;
}

const TABS = ["Result", "Formats", "Code"] as const;

export function Results(props: Props) {
  const [tab, setTab] = useState<(typeof TABS)[number]>("Result");
  const id = useId();
  const { shown } = props;
  const result = shown?.result ?? null;
  const choose = (step: number) => {
    const next = TABS[(TABS.indexOf(tab) + step + TABS.length) % TABS.length] ?? "Result";
    setTab(next);
    document.getElementById(`${id}-${next}`)?.focus();
  };
  return (
    <section class="results" aria-label="Details">
      <h2 class="hidden">Details</h2>
      <div class="tabs" role="tablist" aria-label="Details">
        {TABS.map((name) => (
          <button
            key={name}
            id={`${id}-${name}`}
            type="button"
            role="tab"
            aria-selected={tab === name}
            aria-controls={`${id}-panel`}
            tabIndex={tab === name ? 0 : -1}
            onClick={() => setTab(name)}
            onKeyDown={(event) => {
              if (event.key === "ArrowRight") choose(1);
              if (event.key === "ArrowLeft") choose(-1);
            }}
          >
            {name}
          </button>
        ))}
        {shown && <Summary {...shown} />}
      </div>
      <div id={`${id}-panel`} class="panel" role="tabpanel" aria-labelledby={`${id}-${tab}`} tabIndex={0}>
        {tab !== "Formats" && <Losses losses={result?.facts.notes} />}
        {tab === "Result" && shown && <Numbers result={shown.result} />}
        {tab === "Formats" && props.own && <Formats {...props} result={result} own={props.own.result} />}
        {tab === "Code" && <Code {...props} result={result} />}
      </div>
    </section>
  );
}

function Summary({ result }: Shown) {
  const { output, input } = result.facts;
  return (
    <p class="summary">
      <span>{output.format}</span>
      <span>{text.size(output)}</span>
      <span>
        {text.bytes(output.bytes)} <small>{text.change(input.bytes, output.bytes)}</small>
      </span>
      <span>{text.milliseconds(result.milliseconds)}</span>
    </p>
  );
}

function Numbers({ result }: { result: Result }) {
  return (
    <div class="numbers">
      <Times result={result} />
      {result.facts.plan && <Plan input={result.facts.input} steps={result.facts.plan} />}
    </div>
  );
}

/** How long each phase took in the service. The rest is the transfer, and the wait for a worker. */
function Times({ result }: { result: Result }) {
  const phases = Object.entries(result.facts.timing).filter(([, taken]) => taken > 0);
  const known = phases.reduce((sum, [, taken]) => sum + taken, 0);
  const all: [string, number][] = [...phases, ["transfer", Math.max(0, result.milliseconds - known)]];
  const total = all.reduce((sum, [, taken]) => sum + taken, 0);
  return (
    <div class="times">
      <h3>Time</h3>
      <div class="bar" aria-hidden="true">
        {all.map(([name, taken]) => (
          <span key={name} class={`phase ${name}`} style={{ width: `${(taken / total) * 100}%` }} />
        ))}
      </div>
      <dl>
        {all.map(([name, taken]) => (
          <div key={name} class={name}>
            <dt>{name}</dt>
            <dd>{text.milliseconds(taken)}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}
