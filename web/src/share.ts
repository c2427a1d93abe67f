/** The part of the address after #, which holds source and request. */

import type { Document } from "./request";
import { keys } from "./service";
import type { Source } from "./types";

export interface Shared {
  example?: string;
  url?: string;
  document: Document;
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
  let document: Document = {};
  try {
    document = JSON.parse(parts.get("request") ?? "{}") as Document;
  } catch {
    // A cut address has no request.
  }
  const [example, url] = [parts.get("example"), parts.get("url")];
  return { document, ...(example && { example }), ...(url && { url }) };
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
