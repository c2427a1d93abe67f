/** The API keys of the account. The service does not know their secrets. */

import type { Key } from "./account";
import { Section, Time } from "./parts";
import type { Polled } from "./polled";

export function Keys({ polled }: { polled: Polled<Key[]> }) {
  return (
    <Section title="API keys" polled={polled}>
      <table>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Ends in</th>
            <th scope="col">Scopes</th>
            <th scope="col" class="wide">
              Created
            </th>
            <th scope="col">Last used</th>
          </tr>
        </thead>
        <tbody>
          {polled.value?.map((item) => (
            <Row key={item.id} item={item} />
          ))}
        </tbody>
      </table>
    </Section>
  );
}

function Row({ item }: { item: Key }) {
  const rotating = item.previous_until !== undefined && Date.parse(item.previous_until) > Date.now();
  return (
    <tr class={item.revoked_at ? "revoked" : ""}>
      <td>
        {item.name || <small>no name</small>} {item.calling && <span class="badge delivered">this key</span>}
        {item.revoked_at && <span class="badge failed">revoked</span>}
        {rotating && <span class="badge scheduled">rotated</span>}
      </td>
      <td>
        <code>…{item.hint}</code>
      </td>
      <td>{item.scopes.join(", ")}</td>
      <td class="wide">
        <Time at={item.created_at} />
      </td>
      <td>{item.last_used_at ? <Time at={item.last_used_at} /> : <small>never</small>}</td>
    </tr>
  );
}
