/** Parts that the sections of the dashboard share. */

import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import { ago, moment } from "../shared/text";
import type { Polled } from "./polled";

const FORBIDDEN = 403;

interface SectionProps {
  title: string;
  polled: Polled<unknown>;
  tools?: ComponentChildren;
  children: ComponentChildren;
}

/** A section with a title, and its content or the reason why there is none. */
export function Section({ title, polled, tools, children }: SectionProps) {
  const id = useId();
  const { value, error } = polled;
  return (
    <section class="card" aria-labelledby={id}>
      <div class="card-head">
        <h2 id={id}>{title}</h2>
        {tools}
      </div>
      {error && (
        <p class={error.status === FORBIDDEN ? "nothing" : "failure"} role={error.status === FORBIDDEN ? undefined : "alert"}>
          {error.message}
        </p>
      )}
      {value !== null && error?.status !== FORBIDDEN && children}
    </section>
  );
}

/** How long ago something was, with the exact time as a tooltip. */
export function Time({ at }: { at: string }) {
  return (
    <time dateTime={at} title={moment(at)}>
      {ago(at)}
    </time>
  );
}
