/** Calls of the playground: declarations, pictures, results. */

import { type Answer, call, get, post, refused } from "../shared/service";
import type { Document } from "./request";
import type { Declarations, Facts, Result, Source, SourceFacts } from "./types";

const STATIC_FALLBACK = "png";
const MOVING_FALLBACK = "apng";
const SHOWN_BY_ALL = new Set(["image/jpeg", "image/png", "image/gif", "image/webp"]); // to try them would cost a decoding

export type Urls = Answer<"/playground/urls", "post">;
export type Watermark = Answer<"/1.0/watermarks">["watermarks"][number];

export const declarations = (): Promise<Declarations> => get("/playground/declarations.json");

export async function presets(): Promise<Record<string, Document>> {
  return (await get("/playground/presets.json")).presets as Record<string, Document>;
}

/** Asks for the URL and the HTML of a source. With its facts, the HTML offers no width beyond that of the source. */
export function urls(source: string, request: Document, facts: SourceFacts | null, signal: AbortSignal): Promise<Urls> {
  const body = JSON.stringify({ source, request, facts });
  return post("/playground/urls", { headers: { "Content-Type": "application/json" }, body, signal });
}

export async function watermarks(): Promise<Watermark[]> {
  return (await get("/1.0/watermarks")).watermarks;
}

export async function addWatermark(file: Blob, name: string): Promise<Watermark> {
  const body = new FormData();
  body.append("file", file, name);
  return (await post("/1.0/watermarks", { body })).watermark;
}

export async function example(name: string, known: string[]): Promise<Source> {
  if (!known.includes(name)) throw new Error(`There is no example '${name}'. Choose one of ${known.join(", ")}.`);
  const response = await call(`playground/examples/${encodeURIComponent(name)}`);
  if (!response.ok) throw await refused(response);
  return { kind: "example", name, blob: await response.blob() };
}

/** Fetches a source once, as a lossless copy. All previews are made of this copy. */
export async function fetched(url: string, header: string): Promise<Source> {
  const asked = { url, output: { format: STATIC_FALLBACK, metadata: "keep" } };
  let [blob, facts] = await processed("1.0/fetch", jsonBody(asked), header);
  if (facts.input.frames > 1) {
    const moving = { url, output: { format: MOVING_FALLBACK } };
    [blob, facts] = await processed("1.0/fetch", jsonBody(moving), header);
  }
  return { kind: "url", name: facts.input.name, blob, url, fetched: facts.input };
}

function jsonBody(document: Document): RequestInit {
  const body = JSON.stringify({ ...document, response: { mode: "binary" } });
  return { body, headers: { "Content-Type": "application/json" } };
}

/** Processes a source, and returns the result in a form that the browser can show. */
export async function process(
  source: Pick<Source, "blob" | "name">,
  asked: Document,
  header: string,
  signal?: AbortSignal,
): Promise<Result> {
  const started = performance.now();
  const [blob, facts] = await upload(source, asked, header, signal);
  const milliseconds = performance.now() - started;
  const shown = SHOWN_BY_ALL.has(blob.type) ? blob : await viewable(blob, source.name, header, signal);
  return { blob, facts, milliseconds, shown };
}

async function upload(
  source: Pick<Source, "blob" | "name">,
  asked: Document,
  header: string,
  signal?: AbortSignal,
): Promise<[Blob, Facts]> {
  const body = new FormData();
  body.append("data", JSON.stringify({ ...asked, response: { mode: "binary", plan: true } }));
  body.append("file", source.blob, source.name);
  return processed("1.0/upload", { body, signal: signal ?? null }, header);
}

async function processed(path: string, options: RequestInit, header: string): Promise<[Blob, Facts]> {
  const response = await call(path, { method: "POST", ...options });
  const metadata = response.headers.get(header);
  if (!response.ok || metadata === null) throw await refused(response, metadata);
  return [await response.blob(), JSON.parse(metadata) as Facts];
}

/** Returns a picture that the browser can show: the given one, or a copy of it that the service makes. */
export async function viewable(blob: Blob, name: string, header: string, signal?: AbortSignal): Promise<Blob> {
  const shown = await isShown(blob);
  signal?.throwIfAborted();
  if (shown) return blob;
  const [copy, facts] = await upload({ blob, name }, { output: { format: STATIC_FALLBACK } }, header, signal);
  if (facts.input.frames === 1) return copy;
  return (await upload({ blob, name }, { output: { format: MOVING_FALLBACK } }, header, signal))[0];
}

async function isShown(blob: Blob): Promise<boolean> {
  const image = new Image();
  image.src = URL.createObjectURL(blob);
  try {
    await image.decode();
    return true;
  } catch {
    return false;
  } finally {
    URL.revokeObjectURL(image.src);
  }
}
