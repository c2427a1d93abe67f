/** Polls the service while the page is visible. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ServiceError } from "../shared/service";

const POLL_MS = 5000;

export interface Polled<T> {
  value: T | null;
  error: ServiceError | null;
  /** Asks now. */
  reload: () => void;
}

/** Asks at once, and then every few seconds while it is active. A new `ask` starts again. */
export function usePolled<T>(ask: () => Promise<T>, active: boolean): Polled<T> {
  const [value, setValue] = useState<T | null>(null);
  const [error, setError] = useState<ServiceError | null>(null);
  const newest = useRef(0);
  const answered = useRef(0);
  const reload = useCallback(() => {
    const number = ++newest.current;
    ask().then(
      (found) => {
        if (number !== newest.current) return;
        answered.current = number;
        setValue(found);
        setError(null);
      },
      (reason: unknown) => {
        if (number !== newest.current) return;
        answered.current = number;
        setError(reason instanceof ServiceError ? reason : new ServiceError(0, String(reason)));
      },
    );
  }, [ask]);
  useEffect(() => {
    if (!active) return;
    reload();
    const timer = setInterval(() => {
      const waits = answered.current !== newest.current; // a second question would discard the answer to the first
      if (!document.hidden && !waits) reload();
    }, POLL_MS);
    return () => clearInterval(timer);
  }, [active, reload]);
  return { value, error, reload };
}
