/** How much of the monthly quota is used. */

import type { Account } from "./account";
import { Section } from "./parts";
import type { Polled } from "./polled";

const NEARLY = 0.9;

export function Usage({ polled }: { polled: Polled<Account> }) {
  const { value } = polled;
  return (
    <Section title="Usage this month" polled={polled}>
      {value && <Quota {...value} />}
    </Section>
  );
}

function Quota({ quota, subscription }: Account) {
  const { total, used, remaining } = quota;
  const part = total > 0 ? Math.min(used / total, 1) : 1;
  return (
    <div class="usage">
      <p>
        <strong>{count(used)}</strong> of {count(total)} pictures
      </p>
      <div
        class={`meter${part >= NEARLY ? " nearly" : ""}`}
        role="meter"
        aria-label="Quota"
        aria-valuemin={0}
        aria-valuemax={total}
        aria-valuenow={Math.min(used, total)}
        aria-valuetext={`${count(used)} of ${count(total)} pictures`}
      >
        <span style={{ width: `${100 * part}%` }} />
      </div>
      <p>
        {count(remaining)} left until {nextMonth()}. Plan {subscription.name}, {subscription.period}.
      </p>
    </div>
  );
}

function count(number: number): string {
  return number.toLocaleString("en");
}

/** Returns the day on which the quota is renewed, in UTC. */
function nextMonth(): string {
  const now = new Date();
  const next = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1));
  return next.toLocaleDateString("en", { day: "numeric", month: "long", timeZone: "UTC" });
}
