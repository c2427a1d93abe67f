/** The fragment of the address, after #: it holds the source and the request. */

import { type Document, isObject } from "./request";
import type { Source } from "./types";

export interface Shared {
  example?: string;
  url?: string;
  document: Document;
  /** Why the request in the address cannot be read. */
  problem?: string;
}

/** Reads a fragment, with or without its #. */
export function parsed(hash: string): Shared & { key?: string } {
  const parts = new URLSearchParams(hash.replace(/^#/, ""));
  const [example, url, key] = [parts.get("example"), parts.get("url"), parts.get("key")];
  return {
    ...request(parts.get("request") ?? "{}"),
    ...(example && { example }),
    ...(url && { url }),
    ...(key && { key }),
  };
}

function request(text: string): { document: Document; problem?: string } {
  let problem = "The request in the address is not a JSON object.";
  try {
    const document: unknown = JSON.parse(text);
    if (isObject(document)) return { document };
  } catch {
    problem = "The request in the address is not valid JSON. Was the address cut off?";
  }
  return { document: {}, problem };
}

type Named = Pick<Source, "kind" | "name" | "url">;

/** Returns the source that an address names, as long as it is not open. */
export function namedIn({ example, url }: Pick<Shared, "example" | "url">): Named | null {
  if (url) return { kind: "url", name: url, url };
  return example ? { kind: "example", name: example } : null;
}

/** Returns the fragment for a source and a request, with its #. It is empty if there is nothing to share. */
export function hashOf(source: Named | null, document: Document): string {
  const parts = new URLSearchParams();
  if (source?.kind === "example") parts.set("example", source.name);
  if (source?.url) parts.set("url", source.url);
  if (Object.keys(document).length) parts.set("request", JSON.stringify(document));
  return withHash(parts);
}

/** Returns a fragment without the key. */
export function withoutKey(hash: string): string {
  const parts = new URLSearchParams(hash.replace(/^#/, ""));
  parts.delete("key");
  return withHash(parts);
}

function withHash(parts: URLSearchParams): string {
  const text = parts.toString();
  return text && `#${text}`;
}
