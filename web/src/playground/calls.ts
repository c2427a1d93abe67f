/** Calls of the playground: declarations, sources, previews. */

import { type Answer, address, authorization, call, get, post, REFUSED, refused, ServiceError, UNREACHABLE } from "../shared/service";
import type { Document } from "./request";
import type { Declarations, Facts, Result, Scores, Size, Source, SourceFacts } from "./types";
import { WHOLE } from "./view";

const STATIC_FALLBACK = "png";
const MOVING_FALLBACK = "apng";
const NOT_FOUND = 404;
const TOO_LARGE = 413;
const JSON_HEADERS = { "Content-Type": "application/json" };
const ACCEPTED = "image/avif,image/webp,image/*,*/*;q=0.8"; // as browsers ask for the pictures of a page

export type Urls = Answer<"/playground/urls", "post">;
export type Watermark = Answer<"/1.0/watermarks">["watermarks"][number];
type Kept = Answer<"/playground/sources", "post">["source"];

export const declarations = (): Promise<Declarations> => get("/playground/declarations.json");

export async function presets(): Promise<Record<string, Document>> {
  return (await get("/playground/presets.json")).presets as Record<string, Document>;
}

/** Asks for the URL and the HTML of a source. With its facts, the HTML offers no width beyond that of the source. */
export function urls(source: string, request: Document, facts: SourceFacts | null, signal: AbortSignal): Promise<Urls> {
  const body = JSON.stringify({ source, request, facts });
  return post("/playground/urls", { headers: JSON_HEADERS, body, signal });
}

export async function watermarks(): Promise<Watermark[]> {
  return (await get("/1.0/watermarks")).watermarks;
}

export async function addWatermark(file: Blob, name: string): Promise<Watermark> {
  const body = new FormData();
  body.append("file", file, name);
  return (await post("/1.0/watermarks", { body })).watermark;
}

/** Returns the families of fonts that texts may use. They stay the same as long as the page is open. */
export function families(): Promise<string[]> {
  knownFamilies ??= get("/playground/fonts.json").then(
    ({ families }) => families,
    (reason: unknown) => {
      knownFamilies = null;
      throw reason;
    },
  );
  return knownFamilies;
}

let knownFamilies: Promise<string[]> | null = null;
const samples = new Map<string, Promise<string>>();

/** Returns the address of a sample of a font. */
export function fontSample(family: string): Promise<string> {
  const known = samples.get(family) ?? loadedSample(family);
  samples.set(family, known);
  known.catch(() => samples.delete(family));
  return known;
}

async function loadedSample(family: string): Promise<string> {
  const response = await call(`playground/fonts/${encodeURIComponent(family)}`);
  if (!response.ok) throw await refused(response);
  return URL.createObjectURL(await response.blob());
}

export async function example(name: string, known: string[]): Promise<Source> {
  if (!known.includes(name)) throw new Error(`There is no example '${name}'. Choose one of ${known.join(", ")}.`);
  const response = await call(`playground/examples/${encodeURIComponent(name)}`);
  if (!response.ok) throw await refused(response);
  return { kind: "example", name, blob: await response.blob() };
}

/** Lets the service fetch a source, and loads it. */
export async function fetched(url: string): Promise<Source> {
  const kept = await keepUrl(url);
  const response = await call(`playground/sources/${kept.id}`);
  if (!response.ok) throw await refused(response);
  const source: Source = { kind: "url", name: kept.name, blob: await response.blob(), url };
  sendings.set(source, { id: Promise.resolve(kept.id), abort: new AbortController() });
  return source;
}

/** Sources that were sent, or are being sent. The service gives each an id. */
const sendings = new WeakMap<Source, { id: Promise<string>; abort: AbortController }>();

/**
 * Returns the id of a source for previews. It is sent once; `onProgress` gets the share that was sent.
 *
 * A source that the service refuses is not sent again: it stays wrong.
 */
function kept(source: Source, onProgress: (share: number) => void): Promise<string> {
  if (source.kind === "example") return Promise.resolve(source.name);
  const known = sendings.get(source);
  if (known) return known.id;
  const abort = new AbortController();
  const keeping = source.url ? keepUrl(source.url) : keepFile(source, onProgress, abort.signal);
  const id = keeping.then((found) => found.id);
  sendings.set(source, { id, abort });
  id.catch((reason: unknown) => {
    if (!isFinal(reason)) sendings.delete(source);
  });
  return id;
}

/** Returns true if sending a source again fails again. */
function isFinal(reason: unknown): boolean {
  return reason instanceof ServiceError && (reason.status === REFUSED || reason.status === TOO_LARGE);
}

/** Stops sending a source that is not needed any more. */
export function stopSending(source: Source): void {
  sendings.get(source)?.abort.abort();
}

async function keepUrl(url: string): Promise<Kept> {
  return (await post("/playground/sources", { headers: JSON_HEADERS, body: JSON.stringify({ url }) })).source;
}

async function keepFile({ blob, name }: Source, onProgress: (share: number) => void, signal: AbortSignal): Promise<Kept> {
  await presets(); // a wrong key is told here: for a request with progress, the browser would ask for a password
  const body = new FormData();
  body.append("file", blob, name);
  const response = await sent("playground/sources", body, onProgress, signal);
  if (!response.ok) throw await refused(response);
  return ((await response.json()) as { source: Kept }).source;
}

/** Posts a form as `call` does, and tells how much of it was sent. */
function sent(path: string, body: FormData, onProgress: (share: number) => void, signal: AbortSignal): Promise<Response> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", address(path));
    for (const [name, value] of Object.entries(authorization())) request.setRequestHeader(name, value);
    request.upload.onprogress = ({ loaded, total }) => onProgress(loaded / total);
    request.onload = () => resolve(new Response(request.responseText, { status: request.status }));
    request.onerror = () => reject(new ServiceError(UNREACHABLE));
    request.onabort = () => reject(new DOMException("", "AbortError"));
    signal.addEventListener("abort", () => request.abort());
    if (signal.aborted) reject(new DOMException("", "AbortError"));
    else request.send(body);
  });
}

const SOON_MS = 30;
const MEASURABLE = 16_000; // less comes together with the head of the answer

/** Bytes that came in a millisecond of the last answer. */
let speed = 0;

/** The bytes of the last result of each source. */
const lastBytes = new WeakMap<Source, number>();

/** Returns the window to ask for. Over a fast connection, reducing a picture would take longer than sending it. */
function worthwhile(source: Source, window: Size | undefined): Size | undefined {
  return window && (lastBytes.get(source) ?? Infinity) < SOON_MS * speed ? WHOLE : window;
}

/** Processes a source. Without a window, the picture is the result itself. */
export async function preview(
  { source, document, window: shownIn }: { source: Source; document: Document; window?: Size },
  header: string,
  signal?: AbortSignal,
  onProgress: (share: number) => void = () => undefined,
): Promise<Result> {
  const request = { ...document, response: { mode: "binary", plan: true } };
  const ask = async (id: string): Promise<Result> => {
    const started = performance.now();
    const window = worthwhile(source, shownIn);
    const body = JSON.stringify({ request, window });
    const path = `playground/previews/${encodeURIComponent(id)}`;
    const headers = { ...JSON_HEADERS, Accept: ACCEPTED };
    const response = await call(path, { method: "POST", headers, body, signal: signal ?? null });
    const metadata = response.headers.get(header);
    if (!response.ok || metadata === null) throw await refused(response, metadata);
    const answered = performance.now();
    const shown = await response.blob();
    const facts = JSON.parse(metadata) as Facts;
    if (shown.size > MEASURABLE) speed = shown.size / Math.max(1, performance.now() - answered);
    lastBytes.set(source, facts.output.bytes);
    return { shown, facts, milliseconds: performance.now() - started, window: window ?? WHOLE };
  };
  return withId(source, ask, signal, onProgress);
}

/** Asks the service about a source by its id. If the service does not have it any more, it is sent again. */
async function withId<Found>(
  source: Source,
  ask: (id: string) => Promise<Found>,
  signal?: AbortSignal,
  onProgress: (share: number) => void = () => undefined,
): Promise<Found> {
  const id = await kept(source, onProgress);
  signal?.throwIfAborted();
  try {
    return await ask(id);
  } catch (reason) {
    if (!(reason instanceof ServiceError && reason.status === NOT_FOUND) || source.kind === "example") throw reason;
    sendings.delete(source);
    return ask(await kept(source, onProgress));
  }
}

const MOST_SCORES = 200; // of a source
const knownScores = new WeakMap<Source, Map<string, Scores>>();

/** Returns size and look of a result, or of files that have about some looks. The service is asked once for each source. */
export async function scores(source: Source, request: Document, looks: number[] | null, signal: AbortSignal): Promise<Scores> {
  const known = knownScores.get(source) ?? new Map<string, Scores>();
  knownScores.set(source, known);
  const body = JSON.stringify({ request, looks });
  const found =
    known.get(body) ??
    (await withId(
      source,
      (id) => {
        const at = `playground/scores/${encodeURIComponent(id)}`;
        return post("/playground/scores/{source}", { at, headers: JSON_HEADERS, body, signal });
      },
      signal,
    ));
  known.delete(body); // so that it becomes the newest one
  known.set(body, found);
  for (const oldest of [...known.keys()].slice(0, -MOST_SCORES)) known.delete(oldest);
  return found;
}

/** Returns a source in a form that the browser can show: its file, or a copy of it that the service makes. */
export async function viewable(source: Source, header: string): Promise<Blob> {
  if (await isShown(source.blob)) return source.blob;
  const copy = await preview({ source, document: { output: { format: STATIC_FALLBACK } } }, header);
  if (copy.facts.input.frames === 1) return copy.shown;
  return (await preview({ source, document: { output: { format: MOVING_FALLBACK } } }, header)).shown;
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
