/** The result beside the original under a divider, at any zoom. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Result } from "./types";

interface Props {
  original: Blob | null;
  result: Result | null;
  busy: boolean;
  /** Shows the result alone. */
  plain: boolean;
  children?: ComponentChildren;
}

type Zoom = "fit" | number;

const ZOOMS: Zoom[] = ["fit", 1, 2, 4, 8];
const STEP = 2;

export function Stage({ original, result, busy, plain, children }: Props) {
  const [divider, setDivider] = useState(50);
  const [zoom, setZoom] = useState<Zoom>("fit");
  const frame = useRef<HTMLDivElement>(null);
  const originalUrl = useUrl(original);
  const resultUrl = useUrl(result?.shown ?? null);
  const output = result?.facts.output;
  const fitted = useFitted(frame, output);
  if (!output || !fitted) return <div class="stage empty" ref={frame} aria-busy={busy} />;
  const scale = zoom === "fit" ? fitted : zoom;
  const box = { width: `${output.width * scale}px`, height: `${output.height * scale}px` };
  const move = (event: PointerEvent) => {
    const area = frame.current?.querySelector(".canvas")?.getBoundingClientRect();
    if (area) setDivider(Math.min(100, Math.max(0, ((event.clientX - area.left) / area.width) * 100)));
  };
  const compared = !plain && originalUrl !== "";
  return (
    <div class="stage-area">
      <div class="stage" ref={frame} aria-busy={busy} tabIndex={0} role="group" aria-label="Picture">
        <div class={`canvas${scale > 1 ? " pixels" : ""}`} style={box}>
          <img class="after" src={resultUrl} alt="Result" draggable={false} />
          {compared && (
            <img
              class="before"
              src={originalUrl}
              alt="Original"
              draggable={false}
              style={{ clipPath: `inset(0 ${100 - divider}% 0 0)` }}
            />
          )}
          {compared && (
            <div
              class="divider"
              role="slider"
              tabIndex={0}
              aria-label="Divider between original and result"
              aria-valuemin={0}
              aria-valuemax={100}
              aria-valuenow={Math.round(divider)}
              style={{ left: `${divider}%` }}
              onPointerDown={(event) => {
                event.currentTarget.setPointerCapture(event.pointerId);
                event.preventDefault();
                event.currentTarget.focus();
              }}
              onPointerMove={(event) => {
                if (event.currentTarget.hasPointerCapture(event.pointerId)) move(event);
              }}
              onKeyDown={(event) => {
                const by = { ArrowLeft: -STEP, ArrowRight: STEP, Home: -100, End: 100 }[event.key];
                if (by === undefined) return;
                event.preventDefault();
                setDivider((at) => Math.min(100, Math.max(0, at + by)));
              }}
            />
          )}
          {compared && (
            <p class="labels" aria-hidden="true">
              <span>Original</span>
              <span>Result</span>
            </p>
          )}
          {children}
        </div>
      </div>
      <div class="zoom" role="group" aria-label="Zoom">
        {ZOOMS.map((item) => (
          <button key={item} type="button" aria-pressed={zoom === item} onClick={() => setZoom(item)}>
            {item === "fit" ? `Fit ${Math.round(fitted * 100)} %` : `${item * 100} %`}
          </button>
        ))}
        {busy && <span class="busy" />}
      </div>
    </div>
  );
}

/** Returns the address of a picture in memory, as long as it is shown. */
function useUrl(blob: Blob | null): string {
  const [url, setUrl] = useState("");
  useEffect(() => {
    if (!blob) {
      setUrl("");
      return;
    }
    const made = URL.createObjectURL(blob);
    setUrl(made);
    // The next picture may still load while this one is shown.
    return () => void setTimeout(() => URL.revokeObjectURL(made), 1000);
  }, [blob]);
  return url;
}

/** Returns the scale at which a picture fits the frame; small pictures are not enlarged. */
function useFitted(frame: { current: HTMLElement | null }, output?: { width: number; height: number }) {
  const [room, setRoom] = useState<{ width: number; height: number } | null>(null);
  const shown = Boolean(output);
  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    const measure = () => setRoom({ width: element.clientWidth, height: element.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, [frame, shown]);
  if (!output || !room) return 0;
  const margin = 24;
  return Math.max(0.01, Math.min(1, (room.width - margin) / output.width, (room.height - margin) / output.height));
}
