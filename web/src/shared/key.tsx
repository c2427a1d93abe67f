/** The dialog that asks for the API key. */

import { useEffect, useRef, useState } from "preact/hooks";

export const WRONG_KEY = "The service does not know this key. It may have been revoked, or cut off when it was copied.";

interface Props {
  note: string;
  refusal: string;
  onKey: (key: string) => void;
  /** Closes the dialog without a key. */
  onClose?: (() => void) | undefined;
}

export function KeyDialog({ note, refusal, onKey, onClose }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [key, setKey] = useState("");
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog
      ref={dialog}
      class="key"
      aria-labelledby="key-title"
      onCancel={(event) => {
        event.preventDefault();
        onClose?.();
      }}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (key.trim()) onKey(key.trim());
        }}
      >
        <h2 id="key-title">API key</h2>
        <p>{note}</p>
        <p>
          No key yet? Whoever runs the service makes one with <code>imgsvc keys create</code>. On your own computer,{" "}
          <code>imgsvc playground</code> opens a playground that asks for none.
        </p>
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
        <div class="actions">
          {onClose && (
            <button type="button" onClick={onClose}>
              Cancel
            </button>
          )}
          <button type="submit" class="primary">
            Use this key
          </button>
        </div>
      </form>
    </dialog>
  );
}
