/** Previews: the newest result of the current request. */

import { useEffect, useRef, useState } from "preact/hooks";
import { ServiceError, told, UNREACHABLE } from "../shared/service";
import { process, viewable } from "./calls";
import type { Document } from "./request";
import type { Result, Source } from "./types";

const PATIENCE_MS = 250;
const RETRY_MS = 2000;
const NO_ANSWER = -1;

interface Asked {
  source: Source;
  document: Document;
}

/** The picture of one request, with all that belongs to it. */
export interface Shown extends Asked {
  result: Result;
  /** The source in a form that the browser can show. It is null until it is loaded, and if there is no such form. */
  original: Blob | null;
}

export interface Preview {
  shown: Shown | null;
  /** Why the current request has no result. */
  error: ServiceError | null;
  busy: boolean;
}

interface State {
  shown: Shown | null;
  failed: (Asked & { error: ServiceError }) | null;
  busy: boolean;
}

/**
 * Asks the service for each change of the document.
 *
 * The newest request wins. An older one may still finish if it is quick, so that the picture follows a moving slider.
 * If it is not, it is aborted, and the service stops its work. If the service cannot be reached, the request is
 * repeated until it answers.
 */
export function usePreview(source: Source | null, document: Document, header: string): Preview {
  const [{ shown, failed, busy }, setState] = useState<State>({ shown: null, failed: null, busy: false });
  const [attempt, setAttempt] = useState(0);
  const running = useRef<AbortController | null>(null);
  const waiting = useRef<Asked | null>(null);
  const originals = useRef(new WeakMap<Source, Promise<Blob | null>>());

  useEffect(() => {
    if (!source || !header) return;
    const originalOf = (asked: Source): Promise<Blob | null> => {
      const known = originals.current.get(asked) ?? viewable(asked.blob, asked.name, header).catch(() => null);
      originals.current.set(asked, known);
      return known;
    };
    const start = async (asked: Asked): Promise<void> => {
      const abort = new AbortController();
      running.current = abort;
      setState((before) => ({ ...before, busy: true }));
      const coming = originalOf(asked.source);
      try {
        const result = await process(asked.source, asked.document, header, abort.signal);
        setState(({ shown: before }) => {
          const original = before?.source === asked.source ? before.original : null;
          return { shown: { ...asked, result, original }, failed: null, busy: false };
        });
        void coming.then((original) =>
          setState((before) => {
            if (before.shown?.source !== asked.source || before.shown.original === original) return before;
            return { ...before, shown: { ...before.shown, original } };
          }),
        );
      } catch (reason) {
        if (!abort.signal.aborted) {
          const error = reason instanceof ServiceError ? reason : new ServiceError(NO_ANSWER, told(reason));
          setState(({ shown: before }) => ({
            shown: before?.source === asked.source ? before : null,
            failed: { ...asked, error },
            busy: false,
          }));
        }
      }
      running.current = null;
      const next = waiting.current;
      waiting.current = null;
      if (next) void start(next);
    };
    waiting.current = { source, document };
    const overtaken = running.current;
    if (!overtaken) {
      waiting.current = null;
      void start({ source, document });
      return;
    }
    const timer = setTimeout(() => overtaken.abort(), PATIENCE_MS);
    return () => clearTimeout(timer);
  }, [source, document, header, attempt]);

  const error = failed && failed.source === source && failed.document === document ? failed.error : null;
  useEffect(() => {
    if (error?.status !== UNREACHABLE) return;
    const timer = setTimeout(() => setAttempt((count) => count + 1), RETRY_MS);
    return () => clearTimeout(timer);
  }, [error]);
  return { shown, error, busy };
}
