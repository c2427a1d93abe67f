/** Calls of the service, with the types of its OpenAPI document. The key stays in the tab. */

import type { components, paths } from "../../openapi";

type Failure = components["schemas"]["Failure"];
export type Problem = NonNullable<Failure["errors"]>[number];

type Body<Responses> = Responses[keyof Responses] extends { content: { "application/json": infer Found } } ? Found : never;

/** The JSON answer of a call that succeeds. */
export type Answer<Path extends keyof paths, Method extends keyof paths[Path] = "get" & keyof paths[Path]> =
  paths[Path][Method] extends { responses: infer Responses } ? Body<Responses> : never;

const KEY = "imgsvc-key";

/** The status of an error if the service did not answer. */
export const UNREACHABLE = 0;

/** The status of an error if the service refuses a request. */
export const REFUSED = 422;

/** An error that the service answered, or the reason why it did not answer. */
export class ServiceError extends Error {
  constructor(
    readonly status: number,
    message = "The service cannot be reached. Is it still running?",
    readonly problems: Problem[] = [],
  ) {
    super(message);
  }
}

export const keys = {
  get: (): string => sessionStorage.getItem(KEY) ?? "",
  set: (key: string): void => sessionStorage.setItem(KEY, key),
  forget: (): void => sessionStorage.removeItem(KEY),
};

/** Returns the full address of a path. The service may be mounted below another path. */
export function address(path: string): string {
  return new URL(`../${path}`, document.baseURI).href;
}

/** Returns the header that carries the key. */
export function authorization(): Record<string, string> {
  return keys.get() ? { Authorization: `Bearer ${keys.get()}` } : {};
}

/** The key that the service refused last. Requests that were sent with it may still be answered after a new one is taken. */
let refusedKey = "";

/** Returns true if there is a key that was not refused. */
export function hasKey(): boolean {
  return keys.get() !== "" && keys.get() !== refusedKey;
}

export async function call(path: string, options: RequestInit = {}): Promise<Response> {
  const key = keys.get();
  const headers = new Headers(options.headers);
  for (const [name, value] of Object.entries(authorization())) headers.set(name, value);
  try {
    // With credentials, the browser would open its own password dialog after a 401.
    const response = await fetch(address(path), { ...options, headers, credentials: "omit" });
    if (response.status === 401) refusedKey = key;
    return response;
  } catch (error) {
    if (error instanceof DOMException) throw error; // aborted
    throw new ServiceError(UNREACHABLE);
  }
}

/** Returns the error of an answer. Its message is that of its first problem, which tells more, so that one error has one wording. */
export async function refused(response: Response, header?: string | null): Promise<ServiceError> {
  const text = header ?? (await response.text());
  try {
    const { message, errors } = JSON.parse(text) as Partial<Failure>;
    return new ServiceError(response.status, errors?.[0]?.message ?? message ?? response.statusText, errors);
  } catch {
    return new ServiceError(response.status, `The service answered ${response.status} ${response.statusText}.`);
  }
}

/** Gets a JSON answer. A query may follow the path. */
export async function get<Path extends keyof paths>(path: Path, query = ""): Promise<Answer<Path>> {
  return (await answered(path.slice(1) + query)) as Answer<Path>;
}

/** Posts something, and returns the JSON answer. */
export async function post<Path extends keyof paths>(
  path: Path,
  options: RequestInit & { at?: string } = {},
): Promise<Answer<Path, "post" & keyof paths[Path]>> {
  return (await answered(options.at ?? path.slice(1), { ...options, method: "POST" })) as Answer<Path, "post" & keyof paths[Path]>;
}

async function answered(path: string, options?: RequestInit): Promise<unknown> {
  const response = await call(path, options);
  if (!response.ok) throw await refused(response);
  return response.json();
}

/** Returns the message of an error of any kind. */
export function told(reason: unknown): string {
  return reason instanceof Error ? reason.message : String(reason);
}
