/** The last requests, with their pictures until these expire. */

import { useState } from "preact/hooks";
import { address } from "../shared/service";
import { bytes, milliseconds, size } from "../shared/text";
import type { PastRequest } from "./account";
import { Section, Time } from "./parts";
import type { Polled } from "./polled";

const IMAGES = "/1.0/images/";

export function Requests({ polled }: { polled: Polled<PastRequest[]> }) {
  const { value } = polled;
  return (
    <Section title="Last requests" polled={polled}>
      {value?.length === 0 && <p class="nothing">No request yet. Results of fetch, upload and webhooks appear here.</p>}
      {value && value.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Picture</th>
              <th scope="col">Request</th>
              <th scope="col" class="wide">
                Took
              </th>
              <th scope="col">When</th>
            </tr>
          </thead>
          <tbody>
            {value.map((item) => (
              <Row key={item.id} item={item} />
            ))}
          </tbody>
        </table>
      )}
    </Section>
  );
}

function Row({ item }: { item: PastRequest }) {
  const { source, format, width, height, message } = item;
  const known = format !== undefined && width !== undefined && height !== undefined && item.bytes !== undefined;
  return (
    <tr>
      <td class="thumb">
        <Thumb item={item} />
      </td>
      <td title={item.id}>
        {source ?? <small>{item.id.slice(0, 8)}</small>}
        {known && (
          <small class="facts">
            {format} {size({ width, height })}, {bytes(item.bytes ?? 0)}
          </small>
        )}
        {message !== undefined && (
          <span class="wrong facts">
            {item.code} {message}
          </span>
        )}
      </td>
      <td class="wide took">{item.milliseconds === undefined ? "" : milliseconds(item.milliseconds)}</td>
      <td>
        <Time at={item.finished_at} />
      </td>
    </tr>
  );
}

/** The picture, a link to its store, or the reason why there is none. */
function Thumb({ item }: { item: PastRequest }) {
  const [unseen, setUnseen] = useState(false);
  const { url, expires_at: expires, source = "result" } = item;
  if (url === undefined) return <span class="no-thumb wrong">failed</span>;
  if (expires === undefined) return <Elsewhere url={url} />;
  if (Date.parse(expires) <= Date.now()) return <span class="no-thumb">expired</span>;
  const place = address(url.slice(url.indexOf(IMAGES) + 1));
  return (
    <a href={place} target="_blank" rel="noreferrer">
      {unseen ? (
        <span class="no-thumb">open</span>
      ) : (
        <img src={place} alt={source} loading="lazy" decoding="async" onError={() => setUnseen(true)} />
      )}
    </a>
  );
}

function Elsewhere({ url }: { url: string }) {
  if (!/^https?:/.test(url)) return <span class="no-thumb">stored</span>;
  return (
    <a href={url} target="_blank" rel="noreferrer" class="no-thumb">
      stored
    </a>
  );
}
