/** The newest result of what is asked. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { Document } from "./request";
import { ServiceError, told } from "../shared/service";
import { process } from "./calls";
import type { Result, Source } from "./types";

const PATIENCE_MS = 250;

export interface Preview {
  result: Result | null;
  /** The document that the result is of. */
  document: Document | null;
  error: ServiceError | null;
  busy: boolean;
}

interface Asked {
  source: Source;
  document: Document;
}

/**
 * Asks the service for each change of the document.
 *
 * The newest request wins. A request that is overtaken may still finish if it is quick, so that the picture
 * follows a moving slider; otherwise it is aborted, and the service stops its work.
 */
export function usePreview(source: Source | null, document: Document, header: string): Preview {
  const [preview, setPreview] = useState<Preview>({ result: null, document: null, error: null, busy: false });
  const running = useRef<AbortController | null>(null);
  const waiting = useRef<Asked | null>(null);
  const shownSource = useRef<Source | null>(null);

  useEffect(() => {
    if (!source || !header) return;
    const start = async (asked: Asked): Promise<void> => {
      const abort = new AbortController();
      running.current = abort;
      setPreview((before) => ({ ...before, busy: true }));
      try {
        const result = await process(asked.source, asked.document, header, abort.signal);
        shownSource.current = asked.source;
        setPreview({ result, document: asked.document, error: null, busy: false });
      } catch (error) {
        if (!abort.signal.aborted) {
          const known = error instanceof ServiceError ? error : new ServiceError(0, told(error));
          setPreview((before) => ({
            ...before,
            result: shownSource.current === asked.source ? before.result : null,
            error: known,
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
  }, [source, document, header]);

  return preview;
}
