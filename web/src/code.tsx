/** The request as JSON, curl, Python, command, URL and HTML, each with a button that copies it. */

import { useEffect, useState } from "preact/hooks";
import { Copy } from "./copy";
import type { Document } from "./request";
import { urls, type Urls } from "./service";
import * as snippets from "./snippets";
import type { Declarations, Request, Result, Source } from "./types";

interface Props {
  declarations: Declarations;
  source: Source | null;
  request: Request;
  document: Document;
  result: Result | null;
}

const DELAY_MS = 200;
const UNSIGNED = "unsigned: the account has no signing key, or the API key not the scope admin";
const UNKNOWN_SOURCE = "https://example.org/";

export function Code({ declarations, source, request, document, result }: Props) {
  const format = result?.facts.output.format ?? "jpg";
  const asked = { declarations, source, request, document, format };
  const made = useUrls(source?.url ?? UNKNOWN_SOURCE + encodeURIComponent(source?.name ?? "picture.jpg"), document);
  const note = typeof made !== "string" && !made.signed ? UNSIGNED : "";
  const parts: [string, string, string?][] = [
    ["JSON", snippets.json(asked)],
    ["curl", snippets.curl(asked)],
    ["Python", snippets.python(asked)],
    ["Command", snippets.command(asked)],
    ["URL", typeof made === "string" ? made : made.url, note],
    ["HTML", typeof made === "string" ? made : made.picture],
  ];
  return (
    <div class="code">
      {parts.map(([title, text, note]) => (
        <section key={title} data-language={title}>
          <h3>
            {title} <Copy text={() => text} label={`Copy ${title}`} />
            {note && <small>{note}</small>}
          </h3>
          <pre tabIndex={0} role="group" aria-label={title}>
            {text}
          </pre>
        </section>
      ))}
    </div>
  );
}

/** Returns the URLs of a source, or the reason why there are none. */
function useUrls(source: string, document: Document): Urls | string {
  const [found, setFound] = useState<Urls | string>("");
  useEffect(() => {
    const abort = new AbortController();
    const timer = setTimeout(() => {
      urls(source, document, abort.signal).then(setFound, (reason: unknown) => {
        if (!abort.signal.aborted) setFound(reason instanceof Error ? reason.message : String(reason));
      });
    }, DELAY_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [source, document]);
  return found;
}
