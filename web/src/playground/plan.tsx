/** The plan as pictures: for each step its frame, and the frame before it for comparison. */

import { size } from "../shared/text";
import type { PlanStep, Size } from "./types";

const ROOM = 44;

export function Plan({ input, steps }: { input: Size; steps: PlanStep[] }) {
  const largest = Math.max(input.width, input.height, ...steps.map((step) => Math.max(step.width, step.height)));
  return (
    <div class="plan">
      <h3>Plan</h3>
      <ol>
        {steps.map((step, index) => (
          <li key={index} title={step.why}>
            <svg viewBox={`0 0 ${ROOM} ${ROOM}`} width={ROOM} height={ROOM} aria-hidden="true">
              <Frame of={steps[index - 1] ?? input} largest={largest} kind="from" />
              <Frame of={step} largest={largest} kind="to" />
            </svg>
            <div>
              <strong>{step.phase}</strong> <small>{size(step)}</small>
              <p>{step.text}</p>
              {step.why && <p class="why">{step.why}</p>}
            </div>
          </li>
        ))}
      </ol>
    </div>
  );
}

function Frame({ of, largest, kind }: { of: Size; largest: number; kind: string }) {
  const width = Math.max(2, (of.width / largest) * (ROOM - 2));
  const height = Math.max(2, (of.height / largest) * (ROOM - 2));
  return <rect class={kind} x={(ROOM - width) / 2} y={(ROOM - height) / 2} width={width} height={height} />;
}
