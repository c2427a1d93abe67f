/** The dialog that asks for the API key. */

import { useEffect, useRef, useState } from "preact/hooks";

interface Props {
  note: string;
  refusal: string;
  onKey: (key: string) => void;
}

export function KeyDialog({ note, refusal, onKey }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [key, setKey] = useState("");
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="key" aria-labelledby="key-title" onCancel={(event) => event.preventDefault()}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (key.trim()) onKey(key.trim());
        }}
      >
        <h2 id="key-title">API key</h2>
        <p>{note}</p>
        <input
          type="password"
          aria-label="API key"
          autocomplete="off"
          placeholder="isk_…"
          value={key}
          onInput={(event) => setKey(event.currentTarget.value)}
        />
        {refusal && (
          <p class="error" role="alert">
            {refusal}
          </p>
        )}
        <button type="submit" class="primary">
          Use this key
        </button>
      </form>
    </dialog>
  );
}
