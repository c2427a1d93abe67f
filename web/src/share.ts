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
    replace(parts);
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

/** Writes the address without a step in the history of the browser. */
export function writeAddress(source: Source | null, document: Document): void {
  const parts = new URLSearchParams();
  if (source?.kind === "example") parts.set("example", source.name);
  if (source?.url) parts.set("url", source.url);
  if (Object.keys(document).length) parts.set("request", JSON.stringify(document));
  replace(parts);
}

function replace(parts: URLSearchParams): void {
  const text = parts.toString();
  history.replaceState(null, "", `${location.pathname}${location.search}${text && `#${text}`}`);
}
