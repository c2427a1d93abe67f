/** Presets: those of the service, and those that this browser keeps. */

import { useEffect, useRef, useState } from "preact/hooks";
import { type Document, fromDocument, storedPresets } from "./request";
import * as calls from "./calls";
import type { Group, Request } from "./types";

const STORED = "imgsvc-presets";

interface Props {
  groups: Group[];
  request: Request;
  document: Document;
  onLoad: (request: Request) => void;
}

export function Presets({ groups, request, document, onLoad }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [own, setOwn] = useState(() => storedPresets(localStorage.getItem(STORED)));
  const [shared, setShared] = useState<Record<string, Document>>({});
  const [name, setName] = useState("");
  useEffect(() => localStorage.setItem(STORED, JSON.stringify(own)), [own]);
  const open = () => {
    dialog.current?.showModal();
    calls.presets().then(setShared, () => setShared({}));
  };
  const load = (preset: Document) => {
    onLoad(fromDocument(preset, groups));
    dialog.current?.close();
  };
  const row = (key: string, preset: Document, mine: boolean) => (
    <li key={key}>
      <button type="button" class="load" onClick={() => load(preset)}>
        {key}
        <small>{Object.keys(preset).join(", ")}</small>
      </button>
      {mine && (
        <button
          type="button"
          class="clear"
          aria-label={`Delete ${key}`}
          onClick={() => setOwn(Object.fromEntries(Object.entries(own).filter(([item]) => item !== key)))}
        >
          ×
        </button>
      )}
    </li>
  );
  return (
    <>
      <button type="button" onClick={open} aria-haspopup="dialog">
        Presets
      </button>
      <dialog ref={dialog} class="presets" aria-labelledby="presets-title">
        <h2 id="presets-title">Presets</h2>
        {Object.keys(shared).length > 0 && <h3>From the service</h3>}
        <ul>{Object.entries(shared).map(([key, preset]) => row(key, preset, false))}</ul>
        <h3>In this browser</h3>
        <ul>{Object.entries(own).map(([key, preset]) => row(key, preset, true))}</ul>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (!name) return;
            setOwn({ ...own, [name]: document });
            setName("");
          }}
        >
          <input
            type="text"
            aria-label="Name of the preset"
            placeholder="Name"
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
          <button type="submit" disabled={!name || Object.keys(request).length === 0}>
            Save the request
          </button>
        </form>
        <button type="button" class="close" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </dialog>
    </>
  );
}
