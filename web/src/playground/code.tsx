/** The request as JSON, curl, Python, command, URL and HTML, each with a button that copies it. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { Copy } from "./copy";
import type { Document } from "./request";
import { told } from "../shared/service";
import { urls, type Urls, type Watermark, watermarks } from "./calls";
import * as snippets from "./snippets";
import type { Declarations, Request, Result, Source, SourceFacts } from "./types";

interface Props {
  declarations: Declarations;
  source: Source | null;
  request: Request;
  document: Document;
  result: Result | null;
  /** Why the service refuses the request. */
  wrong: string | undefined;
}

const DELAY_MS = 200;
const UNSIGNED = "unsigned: the account has no signing key, or the API key lacks the scope admin";
const UNKNOWN_SOURCE = "https://example.org/";
const STAND_IN = "https://example.org/… stands for the address of the picture: fetch it from there to get a URL that works.";

const NOT_COPIED = "The service refuses this request, so there are no buttons to copy it.";

/** The request in one language. */
interface Snippet {
  title: string;
  /** Undefined while the service makes it, and if it cannot be made. */
  text: string | undefined;
  failure?: string | undefined;
  note?: string | undefined;
  remedy?: string | undefined;
}

export function Code({ declarations, source, request, document, result, wrong }: Props) {
  const format = result?.facts.output.format ?? "jpg";
  const marks = useMarkNames(snippets.idsOf(request).length > 0);
  const asked = { declarations, source, request, document, format, marks };
  const facts = useFacts(result?.facts.input);
  const place = source?.url ?? UNKNOWN_SOURCE + encodeURIComponent(source?.name ?? "picture.jpg");
  const { made, failure = wrong } = useUrls(place, document, facts);
  const remedy = source?.url === undefined && made ? STAND_IN : undefined;
  const parts: Snippet[] = [
    { title: "JSON", text: snippets.json(asked) },
    { title: "curl", text: snippets.curl(asked) },
    { title: "Python", text: snippets.python(asked) },
    { title: "Command", text: snippets.command(asked) },
    { title: "URL", text: made?.url, failure, note: made?.signed === false ? UNSIGNED : undefined, remedy },
    { title: "HTML", text: made?.picture, failure: failure ?? made?.no_picture, remedy },
  ];
  return (
    <div class="code">
      {wrong && <p class="note">{NOT_COPIED}</p>}
      {parts.map((part) => (
        <Section key={part.title} {...part} copied={!wrong} />
      ))}
    </div>
  );
}

function Section({ title, text, failure, note, remedy, copied }: Snippet & { copied: boolean }) {
  return (
    <section data-language={title}>
      <h3>
        {title} {text !== undefined && copied && <Copy text={() => text} label={`Copy ${title}`} />}
        {note && <small>{note}</small>}
      </h3>
      {remedy && text !== undefined && <p class="note">{remedy}</p>}
      {failure ? (
        <p class="error">{failure}</p>
      ) : (
        <pre tabIndex={0} role="group" aria-label={title}>
          {text ?? "…"}
        </pre>
      )}
    </section>
  );
}

/** Returns the facts that URLs depend on. Equal facts give the same object. */
function useFacts(input?: SourceFacts): SourceFacts | null {
  const { width, height, orientation, frames } = input ?? {};
  return useMemo(
    () => (width && height && orientation && frames ? { width, height, orientation, frames } : null),
    [width, height, orientation, frames],
  );
}

interface Made {
  /** What the URLs are made of. */
  of: readonly unknown[];
  made?: Urls;
  failure?: string;
}

/** Returns the URLs of a source with a request, or why there are none. While they are made, it returns neither. */
function useUrls(source: string, document: Document, facts: SourceFacts | null): Pick<Made, "made" | "failure"> {
  const [found, setFound] = useState<Made>({ of: [] });
  useEffect(() => {
    const abort = new AbortController();
    const of = [source, document, facts];
    const timer = setTimeout(() => {
      urls(source, document, facts, abort.signal).then(
        (made) => setFound({ of, made }),
        (reason: unknown) => {
          if (!abort.signal.aborted) setFound({ of, failure: told(reason) });
        },
      );
    }, DELAY_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [source, document, facts]);
  const current = found.of[0] === source && found.of[1] === document && found.of[2] === facts;
  return current ? found : {};
}

/** Returns the file names of the account's watermarks by id, if a request needs them. */
function useMarkNames(needed: boolean): ReadonlyMap<string, string> {
  const [known, setKnown] = useState<ReadonlyMap<string, string>>(new Map());
  useEffect(() => {
    if (!needed) return;
    const named = (all: Watermark[]) => new Map(all.map(({ id, name }): [string, string] => [id, name]));
    watermarks().then((all) => setKnown(named(all)), () => undefined);
  }, [needed]);
  return known;
}
