/** The request as JSON, curl, Python, command, URL and HTML, each with a button that copies it. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { Copy } from "./copy";
import type { Document } from "./request";
import { urls, type Urls, type WatermarkFacts, watermarks } from "./service";
import * as snippets from "./snippets";
import type { Declarations, Request, Result, Source, SourceFacts, Value } from "./types";

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
const STAND_IN = "https://example.org/… stands for the address of the picture: fetch it from there to get a URL that works.";
const MARK = "logo.png";

export function Code({ declarations, source, request, document, result }: Props) {
  const format = result?.facts.output.format ?? "jpg";
  const mark = useMarkName(request.watermark?.id);
  const asked = { declarations, source, request, document, format, mark };
  const facts = useFacts(result?.facts.input);
  const place = source?.url ?? UNKNOWN_SOURCE + encodeURIComponent(source?.name ?? "picture.jpg");
  const made = useUrls(place, document, facts);
  const unsigned = typeof made !== "string" && !made.signed ? UNSIGNED : "";
  const unknown = source?.url === undefined ? STAND_IN : "";
  const parts: [string, string, string?, string?][] = [
    ["JSON", snippets.json(asked)],
    ["curl", snippets.curl(asked)],
    ["Python", snippets.python(asked)],
    ["Command", snippets.command(asked)],
    ["URL", typeof made === "string" ? made : made.url, unsigned, unknown],
    ["HTML", typeof made === "string" ? made : made.picture, "", unknown],
  ];
  return (
    <div class="code">
      {parts.map(([title, text, note, remedy]) => (
        <section key={title} data-language={title}>
          <h3>
            {title} <Copy text={() => text} label={`Copy ${title}`} />
            {note && <small>{note}</small>}
          </h3>
          {remedy && <p class="note">{remedy}</p>}
          <pre tabIndex={0} role="group" aria-label={title}>
            {text}
          </pre>
        </section>
      ))}
    </div>
  );
}

/** Returns the facts of a source that URLs depend on, the same object for the same facts. */
function useFacts(input?: SourceFacts): SourceFacts | null {
  const { width, height, orientation, frames } = input ?? {};
  return useMemo(
    () => (width && height && orientation && frames ? { width, height, orientation, frames } : null),
    [width, height, orientation, frames],
  );
}

/** Returns the URLs of a source, or the reason why there are none. */
function useUrls(source: string, document: Document, facts: SourceFacts | null): Urls | string {
  const [found, setFound] = useState<Urls | string>("");
  useEffect(() => {
    const abort = new AbortController();
    const timer = setTimeout(() => {
      urls(source, document, facts, abort.signal).then(setFound, (reason: unknown) => {
        if (!abort.signal.aborted) setFound(reason instanceof Error ? reason.message : String(reason));
      });
    }, DELAY_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [source, document, facts]);
  return found;
}

/** Returns the file name of a watermark of the account. */
function useMarkName(id: Value | undefined): string {
  const [known, setKnown] = useState<WatermarkFacts[]>([]);
  useEffect(() => {
    if (id !== undefined) watermarks().then(setKnown, () => undefined);
  }, [id]);
  return known.find((item) => item.id === id)?.name || MARK;
}
