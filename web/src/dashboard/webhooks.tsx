/** Webhooks with their states. Failed and scheduled ones have a button that sends them again. */

import { useState } from "preact/hooks";
import { told } from "../shared/service";
import { retry, STATUSES, type Webhook } from "./account";
import { Section, Time } from "./parts";
import type { Polled } from "./polled";

interface Props {
  polled: Polled<Webhook[]>;
  status: string;
  onStatus: (status: string) => void;
}

export function Webhooks({ polled, status, onStatus }: Props) {
  const { value, error } = polled;
  const choice = !error && (
    <select aria-label="Status" value={status} onChange={(event) => onStatus(event.currentTarget.value)}>
      <option value="">all</option>
      {STATUSES.map((name) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
  return (
    <Section title="Webhooks" polled={polled} tools={choice}>
      {value?.length === 0 && <p class="nothing">No {status} webhook.</p>}
      {value && value.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Status</th>
              <th scope="col">Last attempt</th>
              <th scope="col" class="wide">
                Id
              </th>
              <th scope="col">Accepted</th>
              <th scope="col">
                <span class="hidden">Action</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {value.map((item) => (
              <Row key={item.id} item={item} onRetried={polled.reload} />
            ))}
          </tbody>
        </table>
      )}
    </Section>
  );
}

function Row({ item, onRetried }: { item: Webhook; onRetried: () => void }) {
  const { id, status, attempts, payload } = item;
  const last = attempts.at(-1);
  const waits = payload !== null && (status === "failed" || status === "scheduled");
  return (
    <tr>
      <td>
        <span class={`badge ${status}`}>{status}</span>
      </td>
      <td>
        {last ? last.reason : <small>none yet</small>}
        {attempts.length > 1 && <small> after {attempts.length} attempts</small>}
        {payload?.success === false && <span class="wrong facts">{payload.message}</span>}
      </td>
      <td class="wide">
        <code title={id}>{id.slice(0, 8)}</code>
      </td>
      <td>
        <Time at={item.created_at} />
      </td>
      <td class="action">{waits && <Retry id={id} onRetried={onRetried} />}</td>
    </tr>
  );
}

function Retry({ id, onRetried }: { id: string; onRetried: () => void }) {
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState("");
  const send = async () => {
    setBusy(true);
    setFailure("");
    try {
      await retry(id);
    } catch (reason) {
      setFailure(told(reason));
    }
    setBusy(false);
    onRetried();
  };
  return (
    <>
      <button type="button" disabled={busy} onClick={() => void send()} aria-label={`Retry ${id.slice(0, 8)}`}>
        Retry
      </button>
      {failure && (
        <p class="error" role="alert">
          {failure}
        </p>
      )}
    </>
  );
}
