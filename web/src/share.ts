/** The part of the address after #, which holds source and request. */

import { type Document, isObject } from "./request";
import { keys } from "./service";
import type { Source } from "./types";

export interface Shared {
  example?: string;
  url?: string;
  document: Document;
  /** What is wrong with the request of the address. */
  problem?: string;
}

/** Reads the address. A key in it is kept, and removed from the address. */
export function readAddress(): Shared {
  const parts = new URLSearchParams(location.hash.slice(1));
  const key = parts.get("key");
  if (key) {
    keys.set(key);
    parts.delete("key");
    history.replaceState(null, "", withParts(parts));
  }
  const [example, url] = [parts.get("example"), parts.get("url")];
  return { ...parsed(parts.get("request") ?? "{}"), ...(example && { example }), ...(url && { url }) };
}

function parsed(text: string): { document: Document; problem?: string } {
  let problem = "The request in the address is not a JSON object.";
  try {
    const document: unknown = JSON.parse(text);
    if (isObject(document)) return { document };
  } catch {
    problem = "The request in the address is not valid JSON. Was the address cut off?";
  }
  return { document: {}, problem };
}

/** Returns the address of a source and a request. */
export function addressOf(source: Source | null, document: Document): string {
  const parts = new URLSearchParams();
  if (source?.kind === "example") parts.set("example", source.name);
  if (source?.url) parts.set("url", source.url);
  if (Object.keys(document).length) parts.set("request", JSON.stringify(document));
  return withParts(parts);
}

function withParts(parts: URLSearchParams): string {
  const text = parts.toString();
  return `${location.origin}${location.pathname}${text && `#${text}`}`;
}
