/** Where the picture comes from: a file, the clipboard, a URL, or an example. */

import { useEffect, useRef, useState } from "preact/hooks";
import { bytes, size } from "../shared/text";
import type { ImageFacts, Source } from "./types";

/** Returns the web address in what was dropped, or nothing. */
export function urlIn(dropped: Pick<DataTransfer, "getData">): string | undefined {
  const lines = (dropped.getData("text/uri-list") || dropped.getData("text/plain")).split("\n").map((line) => line.trim());
  return lines.find((line) => /^https?:\/\/\S+$/i.test(line));
}

function isField(target: EventTarget | null): boolean {
  return target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement;
}

/** Takes the chosen file out of a field. Browsers tell nothing if a file is chosen that the field already has. */
export function takenFrom(field: HTMLInputElement): File | undefined {
  const file = field.files?.[0];
  field.value = "";
  return file;
}

interface Props {
  examples: string[];
  source: Source | null;
  /** The name of the picture that the facts are of. */
  name: string | undefined;
  facts: ImageFacts | null;
  onFile: (file: File) => void;
  onExample: (name: string) => void;
  onUrl: (url: string) => void;
  onTyped: () => void;
}

export function SourceBar({ examples, source, name, facts, onFile, onExample, onUrl, onTyped }: Props) {
  const chooser = useRef<HTMLInputElement>(null);
  const [url, setUrl] = useState("");
  const submitted = useRef("");
  useEffect(() => {
    setUrl((typed) => (typed === submitted.current ? (source?.url ?? "") : typed));
    submitted.current = source?.url ?? "";
  }, [source]);
  useEffect(() => {
    const paste = (event: ClipboardEvent) => {
      const file = event.clipboardData?.files[0];
      const url = event.clipboardData && urlIn(event.clipboardData);
      if (file) onFile(file);
      else if (url && !isField(event.target)) onUrl(url);
    };
    addEventListener("paste", paste);
    return () => removeEventListener("paste", paste);
  }, [onFile, onUrl]);
  return (
    <div class="source">
      <button type="button" class="choose" onClick={() => chooser.current?.click()}>
        <span>
          Choose<span class="drop-hint">, drop or paste</span> a picture
        </span>
      </button>
      <input
        ref={chooser}
        type="file"
        accept="image/*,.heic,.heif,.psd,.jp2,.tif,.tiff"
        class="hidden"
        aria-label="Picture file"
        tabIndex={-1}
        onChange={(event) => {
          const file = takenFrom(event.currentTarget);
          if (file) onFile(file);
        }}
      />
      <form
        class="from-url"
        onSubmit={(event) => {
          event.preventDefault();
          submitted.current = url;
          if (url) onUrl(url);
        }}
      >
        <input
          type="url"
          aria-label="URL of a picture"
          placeholder="or a URL: https://…"
          value={url}
          onInput={(event) => {
            setUrl(event.currentTarget.value);
            onTyped();
          }}
        />
        <button type="submit" disabled={url === ""}>
          Fetch
        </button>
      </form>
      {examples.length > 0 && (
        <select
          aria-label="Example pictures"
          value={source?.kind === "example" ? source.name : ""}
          onChange={(event) => event.currentTarget.value && onExample(event.currentTarget.value)}
        >
          <option value="">Examples</option>
          {examples.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      )}
      <p class="source-facts">
        {name && <strong title={name}>{name}</strong>}{" "}
        {facts && (
          <span>
            {facts.format} {size(facts)} {facts.frames > 1 ? `${facts.frames} frames ` : ""}
            {bytes(facts.bytes)}
          </span>
        )}
      </p>
    </div>
  );
}
