/** Calls of the service. The key stays in the tab. */

import type { Document } from "./request";
import type { Declarations, Facts, Problem, Result, Source, SourceFacts } from "./types";

const KEY = "imgsvc-key";
const STATIC_FALLBACK = "png";
const MOVING_FALLBACK = "apng";
const SHOWN_BY_ALL = new Set(["image/jpeg", "image/png", "image/gif", "image/webp"]); // trying them costs a decoding

/** A refusal of the service. */
export class ServiceError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly problems: Problem[] = [],
  ) {
    super(message);
  }
}

interface Failure {
  message?: string;
  errors?: Problem[];
}

export interface Urls {
  url: string;
  picture: string;
  signed: boolean;
}

export interface WatermarkFacts {
  id: string;
  name: string;
}

export const keys = {
  get: (): string => sessionStorage.getItem(KEY) ?? "",
  set: (key: string): void => sessionStorage.setItem(KEY, key),
  forget: (): void => sessionStorage.removeItem(KEY),
};

/** Returns the address of a path of the service, which may be mounted below another one. */
export function address(path: string): string {
  return new URL(`../${path}`, document.baseURI).href;
}

async function call(path: string, options: RequestInit = {}): Promise<Response> {
  const headers = new Headers(options.headers);
  if (keys.get()) headers.set("Authorization", `Bearer ${keys.get()}`);
  try {
    // Without credentials the browser asks for no password of its own after a 401.
    return await fetch(address(path), { ...options, headers, credentials: "omit" });
  } catch (error) {
    if (error instanceof DOMException) throw error; // aborted
    throw new ServiceError(0, "The service cannot be reached. Is it still running?");
  }
}

async function refused(response: Response, header?: string | null): Promise<ServiceError> {
  const text = header ?? (await response.text());
  try {
    const { message, errors } = JSON.parse(text) as Failure;
    return new ServiceError(response.status, message ?? response.statusText, errors);
  } catch {
    return new ServiceError(response.status, `The service answered ${response.status} ${response.statusText}.`);
  }
}

export async function json<T>(path: string, options?: RequestInit): Promise<T> {
  const response = await call(path, options);
  if (!response.ok) throw await refused(response);
  return (await response.json()) as T;
}

export const declarations = (): Promise<Declarations> => json("playground/declarations.json");

export async function presets(): Promise<Record<string, Document>> {
  return (await json<{ presets: Record<string, Document> }>("playground/presets.json")).presets;
}

/** Asks for the URL of a source. Its facts, where they are known, keep the results of its HTML from being enlarged. */
export function urls(source: string, request: Document, facts: SourceFacts | null, signal: AbortSignal): Promise<Urls> {
  const body = JSON.stringify({ source, request, facts });
  return json("playground/urls", { method: "POST", headers: { "Content-Type": "application/json" }, body, signal });
}

export async function watermarks(): Promise<WatermarkFacts[]> {
  return (await json<{ watermarks: WatermarkFacts[] }>("1.0/watermarks")).watermarks;
}

export async function addWatermark(file: Blob, name: string): Promise<WatermarkFacts> {
  const body = new FormData();
  body.append("file", file, name);
  return (await json<{ watermark: WatermarkFacts }>("1.0/watermarks", { method: "POST", body })).watermark;
}

export async function example(name: string, known: string[]): Promise<Source> {
  if (!known.includes(name)) throw new Error(`There is no example '${name}'. Choose one of ${known.join(", ")}.`);
  const response = await call(`playground/examples/${encodeURIComponent(name)}`);
  if (!response.ok) throw await refused(response);
  return { kind: "example", name, blob: await response.blob() };
}

/** Fetches a source once, as a copy without loss that all previews are made of. */
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
