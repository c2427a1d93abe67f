/** The page: usage, keys, requests and webhooks of an account, as far as its key may see them. */

import { useCallback, useEffect, useState } from "preact/hooks";
import { KeyDialog, WRONG_KEY } from "../shared/key";
import * as service from "../shared/service";
import * as account from "./account";
import { Keys } from "./keys";
import { usePolled } from "./polled";
import { Requests } from "./requests";
import { Usage } from "./usage";
import { Webhooks } from "./webhooks";

const UNAUTHORIZED = 401;

export function Dashboard() {
  const [locked, setLocked] = useState(!service.keys.get());
  const [refusal, setRefusal] = useState("");
  const ask = useCallback((why: string) => {
    service.keys.forget();
    setRefusal(why);
    setLocked(true);
  }, []);
  const refuse = useCallback(() => {
    if (!service.hasKey()) ask(WRONG_KEY);
  }, [ask]);
  if (!locked) return <Account onRefused={refuse} onChange={() => ask("")} />;
  return (
    <KeyDialog
      note="The dashboard shows what this key may see. It stays in this tab."
      refusal={refusal}
      onKey={(key) => {
        service.keys.set(key);
        setLocked(false);
      }}
    />
  );
}

interface Props {
  onRefused: () => void;
  onChange: () => void;
}

function Account({ onRefused, onChange }: Props) {
  const [status, setStatus] = useState("");
  const own = usePolled(account.account, true);
  const known = own.value !== null;
  const requests = usePolled(account.requests, known);
  const webhooks = usePolled(
    useCallback(() => account.webhooks(status), [status]),
    known,
  );
  const keys = usePolled(account.keys, known);
  useEffect(() => {
    if (own.error?.status === UNAUTHORIZED) onRefused();
  }, [own.error, onRefused]);
  return (
    <div class="dashboard">
      <header>
        <h1>
          imgsvc <span>dashboard</span>
        </h1>
        <strong class="company">{own.value?.company}</strong>
        <div class="tools">
          <a class="button" href={service.address("playground")}>
            Playground
          </a>
          <button type="button" onClick={onChange}>
            Change key
          </button>
        </div>
      </header>
      <main>
        <Usage polled={own} />
        <Keys polled={keys} />
        <Requests polled={requests} />
        <Webhooks polled={webhooks} status={status} onStatus={setStatus} />
      </main>
    </div>
  );
}
