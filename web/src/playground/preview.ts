/** Previews: the newest result of the current request. */

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ServiceError, told, UNREACHABLE } from "../shared/service";
import { preview, stopSending, viewable } from "./calls";
import type { Document } from "./request";
import type { Result, Size, Source } from "./types";
import { covers } from "./view";

const PATIENCE_MS = 250;
const RETRY_MS = 2000;
const NO_ANSWER = -1;

interface Asked {
  source: Source;
  document: Document;
  /** Where the result is shown. */
  window: Size;
}

/** The picture of one request, with all that belongs to it. */
export interface Shown {
  source: Source;
  document: Document;
  result: Result;
  /** The source in a form that the browser can show. It is null until it is loaded, and if there is no such form. */
  original: Blob | null;
}

export interface Preview {
  shown: Shown | null;
  /** Why the current request has no result. */
  error: ServiceError | null;
  busy: boolean;
  /** Which share of the source was sent, while it is sent. */
  sent: number | null;
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
 * repeated until it answers. Without a source, the service is not asked any more.
 */
export function usePreview(
  source: Source | null,
  document: Document,
  window: Size | null,
  header: string,
  withOriginal = true,
): Preview {
  const [{ shown, failed, busy }, setState] = useState<State>({ shown: null, failed: null, busy: false });
  const [sent, setSent] = useState<number | null>(null);
  const [attempt, setAttempt] = useState(0);
  const running = useRef<{ asked: Asked; abort: AbortController } | null>(null);
  const waiting = useRef<Asked | null>(null);
  const originals = useRef(new WeakMap<Source, Promise<Blob | null>>());
  const latest = useRef<Shown | null>(null);
  latest.current = shown;

  // An effect after the next frame would begin each preview some milliseconds later.
  useLayoutEffect(() => {
    if (!source || !window || !header) {
      if (source) return;
      waiting.current = null;
      running.current?.abort.abort();
      return;
    }
    const before = latest.current;
    if (before?.source === source && before.document === document && covers(before.result, window)) return;
    const originalOf = (asked: Source): Promise<Blob | null> => {
      if (!withOriginal) return Promise.resolve(null);
      const known = originals.current.get(asked) ?? viewable(asked, header).catch(() => null);
      originals.current.set(asked, known);
      return known;
    };
    const start = async (asked: Asked): Promise<void> => {
      const abort = new AbortController();
      running.current = { asked, abort };
      setState((before) => ({ ...before, busy: true }));
      try {
        const making = preview(asked, header, abort.signal, setSent);
        const coming = originalOf(asked.source);
        const result = await making;
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
        if (abort.signal.aborted) setState((before) => ({ ...before, busy: false }));
        else {
          const error = reason instanceof ServiceError ? reason : new ServiceError(NO_ANSWER, told(reason));
          setState(({ shown: before }) => ({
            shown: before?.source === asked.source ? before : null,
            failed: { ...asked, error },
            busy: false,
          }));
        }
      }
      running.current = null;
      setSent(null);
      const next = waiting.current;
      waiting.current = null;
      if (next) void start(next);
    };
    const asked = { source, document, window };
    waiting.current = asked;
    const overtaken = running.current;
    if (!overtaken) {
      waiting.current = null;
      void start(asked);
      return;
    }
    if (overtaken.asked.source !== source) {
      overtaken.abort.abort();
      stopSending(overtaken.asked.source);
      return;
    }
    const timer = setTimeout(() => overtaken.abort.abort(), PATIENCE_MS);
    return () => clearTimeout(timer);
  }, [source, document, window, header, withOriginal, attempt]);

  const error = failed && failed.source === source && failed.document === document ? failed.error : null;
  useEffect(() => {
    if (error?.status !== UNREACHABLE) return;
    const timer = setTimeout(() => setAttempt((count) => count + 1), RETRY_MS);
    return () => clearTimeout(timer);
  }, [error]);
  return { shown, error, busy, sent };
}
