/** A button that copies a text. */

import { useEffect, useState } from "preact/hooks";

export function Copy({ text, label = "Copy" }: { text: () => string; label?: string }) {
  const [state, setState] = useState("");
  useEffect(() => {
    if (!state) return;
    const timer = setTimeout(() => setState(""), 1500);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text());
      setState("Copied");
    } catch {
      setState("Not allowed"); // the browser's settings forbid it
    }
  };
  return (
    <button type="button" class="copy" onClick={() => void copy()}>
      <span aria-live="polite">{state || label}</span>
    </button>
  );
}
