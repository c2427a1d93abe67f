/** The result beside the original under a divider, at any zoom. */

import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { bytes } from "../shared/text";
import type { Shown } from "./preview";
import type { Size } from "./types";
import { covers, dragged, neededPixels, placed, type Point, scaled, type View, visible, zoomed } from "./view";

interface Props {
  shown: Shown | null;
  /** What the original and the result are called. */
  labels: [string, string];
  busy: boolean;
  /** What has to happen before the next picture can be made, if it takes long. */
  waiting: string;
  /** The current request has no result, so that the picture is one of an earlier request. */
  stale: boolean;
  /** Shows the result alone. */
  plain: boolean;
  /** Is called with the pixels that the result needs. */
  onWindow: (window: Size) => void;
  onDownload: () => void;
  children?: ComponentChildren;
}

const SCALES = [1, 2, 4, 8];
const DIVIDER_STEP = 2;
const KEY_STEP = 40;
const KEY_FACTOR = 1.25;
const WHEEL_FACTOR = 1.0015; // of a pixel; a notch of most wheels is 100 or 120
const LINE = 16;
const LATE_MS = 300;
const OWN_POINTERS = ".divider, .crop, .layer-box";

const INVITATION = "Drop a picture here, paste one, or choose one above.";
const ERROR = "There is no picture to show as long as there is an error.";

export function Stage({ shown, labels, busy, waiting, stale, plain, onWindow, onDownload, children }: Props) {
  const [divider, setDivider] = useState(50);
  const [view, setView] = useState<View | null>(null);
  const frame = useRef<HTMLDivElement>(null);
  const output = shown?.result.facts.output;
  const room = useRoom(frame, Boolean(output));
  const originalUrl = useUrl(shown?.original ?? null);
  const resultUrl = useUrl(shown?.result.shown ?? null);
  const { before, after, play } = useTogether(originalUrl, resultUrl);
  const source = shown?.source;
  useEffect(() => setView(null), [source]);
  const isSlow = useLate(busy);
  const change = (next: (view: View | null, picture: Size, room: Size) => View | null) => {
    if (output && room) setView((before) => next(before, output, room));
  };
  const gestures = useGestures(frame, change);
  useEffect(() => {
    if (room) onWindow(neededPixels(view, room, devicePixelRatio));
  }, [view, room, onWindow]);
  if (!shown || !output || !room) return (
    <div class="stage-area">
      <div class="stage empty" ref={frame} aria-busy={busy}>
        {waiting ? <p class="waiting">{waiting}</p> : !busy && <p>{stale ? ERROR : INVITATION}</p>}
      </div>
      <div class="zoom" />
    </div>
  );
  const box = placed(view, output, room);
  const part = visible(box, room);
  const middle = { x: room.width / 2, y: room.height / 2 };
  const isWhole = covers(shown.result, neededPixels(view, room, devicePixelRatio));
  const wait = waiting || (isSlow && !isWhole ? "Loading all pixels …" : "");
  const compared = !plain && originalUrl !== "";
  const hidden = 100 * (1 - (part.x + (divider / 100) * part.width - box.x) / box.width);
  const press = (event: KeyboardEvent) => {
    if (event.target !== event.currentTarget) return;
    const by = arrow(event.key);
    if (by) change((before, ...sizes) => dragged(before, { x: by.x * KEY_STEP, y: by.y * KEY_STEP }, ...sizes));
    else if (event.key === "0") setView(null);
    else if (event.key === "+") change((before, ...sizes) => zoomed(before, KEY_FACTOR, middle, ...sizes));
    else if (event.key === "-") change((before, ...sizes) => zoomed(before, 1 / KEY_FACTOR, middle, ...sizes));
    else return;
    event.preventDefault();
  };
  return (
    <div class="stage-area">
      <div
        class={`stage${view ? " zoomed" : ""}${stale ? " stale" : ""}`}
        ref={frame}
        aria-busy={busy}
        tabIndex={0}
        role="group"
        aria-label="Picture"
        onKeyDown={press}
        onDblClick={(event) => {
          if (!isOwn(event.target)) setView(null);
        }}
        {...gestures}
      >
        <div class={`canvas${box.scale > 1 && isWhole ? " pixels" : ""}`} style={styleOf(box)}>
          <img class="after" ref={after} src={resultUrl} alt="Result" draggable={false} onLoad={play} />
          {compared && (
            <img
              class="before"
              ref={before}
              src={originalUrl}
              alt={labels[0]}
              draggable={false}
              onLoad={play}
              style={{ clipPath: `inset(0 ${hidden}% 0 0)` }}
            />
          )}
          {children}
        </div>
        {compared && (
          <div class="compared" style={styleOf(part)}>
            <Divider
              label={`Divider between ${labels[0]} and ${labels[1]}`}
              at={divider}
              onMove={setDivider}
              onFit={() => setView(null)}
            />
            <p class="labels" aria-hidden="true">
              <span>{labels[0]}</span>
              <span>{labels[1]}</span>
            </p>
          </div>
        )}
        {isSlow && <span class="busy" />}
        {wait && <p class="waiting">{wait}</p>}
      </div>
      <div class="zoom" role="group" aria-label="Zoom">
        <button type="button" aria-pressed={view === null} onClick={() => setView(null)}>
          Fit {Math.round(placed(null, output, room).scale * 100)} %
        </button>
        {SCALES.map((scale) => (
          <button
            key={scale}
            type="button"
            aria-pressed={view?.scale === scale}
            onClick={() => change((before, ...sizes) => scaled(before, scale, middle, ...sizes))}
          >
            {scale * 100} %
          </button>
        ))}
        {view && !SCALES.includes(view.scale) && <output>{Math.round(view.scale * 100)} %</output>}
        <span class="size">{bytes(output.bytes)}</span>
        <button type="button" class="download primary" disabled={stale} onClick={onDownload}>
          Download
        </button>
      </div>
    </div>
  );
}

function styleOf({ x, y, width, height }: Point & Size) {
  return { left: `${x}px`, top: `${y}px`, width: `${width}px`, height: `${height}px` };
}

function arrow(key: string): Point | undefined {
  return {
    ArrowLeft: { x: 1, y: 0 },
    ArrowRight: { x: -1, y: 0 },
    ArrowUp: { x: 0, y: 1 },
    ArrowDown: { x: 0, y: -1 },
  }[key];
}

/** Returns true if an element handles the pointer itself. */
function isOwn(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest(OWN_POINTERS) !== null;
}

interface DividerProps {
  label: string;
  at: number;
  onMove: (change: (at: number) => number) => void;
  onFit: () => void;
}

/** The line between two pictures. It stays in the visible part of the picture, which is its parent. */
function Divider({ label, at, onMove, onFit }: DividerProps) {
  const bounded = (place: number) => Math.min(100, Math.max(0, place));
  return (
    <div
      class="divider"
      role="slider"
      tabIndex={0}
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(at)}
      style={{ left: `${at}%` }}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        event.preventDefault();
        event.currentTarget.focus();
      }}
      onPointerMove={(event) => {
        const area = event.currentTarget.parentElement?.getBoundingClientRect();
        if (!area || !event.currentTarget.hasPointerCapture(event.pointerId)) return;
        const place = ((event.clientX - area.left) / area.width) * 100;
        onMove(() => bounded(place));
      }}
      onKeyDown={(event) => {
        const by = { ArrowLeft: -DIVIDER_STEP, ArrowRight: DIVIDER_STEP, Home: -100, End: 100 }[event.key];
        if (by === undefined) return;
        event.preventDefault();
        onMove((before) => bounded(before + by));
      }}
      onDblClick={onFit}
    />
  );
}

type Change = (next: (view: View | null, picture: Size, room: Size) => View | null) => void;

/** Returns the handlers of a frame: dragging moves the picture, the wheel and two fingers zoom it. */
function useGestures(frame: { current: HTMLElement | null }, change: Change) {
  const pointers = useRef(new Map<number, Point>());
  const placeOf = (event: MouseEvent): Point => {
    const area = frame.current?.getBoundingClientRect();
    return { x: event.clientX - (area?.left ?? 0), y: event.clientY - (area?.top ?? 0) };
  };
  const release = (event: PointerEvent) => void pointers.current.delete(event.pointerId);
  return {
    onPointerDown: (event: PointerEvent) => {
      if (event.button !== 0 || isOwn(event.target)) return;
      pointers.current.set(event.pointerId, placeOf(event));
      frame.current?.setPointerCapture(event.pointerId);
    },
    onPointerMove: (event: PointerEvent) => {
      const from = pointers.current.get(event.pointerId);
      if (!from) return;
      const to = placeOf(event);
      const other = [...pointers.current].find(([id]) => id !== event.pointerId)?.[1];
      pointers.current.set(event.pointerId, to);
      if (other) {
        const factor = distance(to, other) / Math.max(1, distance(from, other));
        const middle = { x: (to.x + other.x) / 2, y: (to.y + other.y) / 2 };
        change((before, ...sizes) => zoomed(before, factor, middle, ...sizes));
      }
      const share = other ? 0.5 : 1; // one of two fingers moves their middle by half of its way
      const by = { x: (to.x - from.x) * share, y: (to.y - from.y) * share };
      change((before, ...sizes) => dragged(before, by, ...sizes));
    },
    onPointerUp: release,
    onPointerCancel: release,
    onWheel: (event: WheelEvent) => {
      const scrolls = document.documentElement.scrollHeight > innerHeight;
      if (scrolls && !event.ctrlKey) return; // the page has to scroll; a pinch on a touchpad comes with ctrlKey
      event.preventDefault();
      const pixels = event.deltaY * (event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE : 1) * (event.ctrlKey ? 5 : 1);
      const at = placeOf(event);
      change((before, ...sizes) => zoomed(before, WHEEL_FACTOR ** -pixels, at, ...sizes));
    },
  };
}

function distance(one: Point, other: Point): number {
  return Math.hypot(one.x - other.x, one.y - other.y);
}

/** Returns the address of a picture in memory, as long as it is shown. It changes together with the picture. */
function useUrl(blob: Blob | null): string {
  const url = useMemo(() => (blob ? URL.createObjectURL(blob) : ""), [blob]);
  // The next picture may still load while this one is shown.
  useEffect(() => () => void setTimeout(() => URL.revokeObjectURL(url), 1000), [url]);
  return url;
}

/** Plays two animations from their first frames together, as soon as both are loaded. */
function useTogether(originalUrl: string, resultUrl: string) {
  const before = useRef<HTMLImageElement>(null);
  const after = useRef<HTMLImageElement>(null);
  const played = useRef("");
  const play = () => {
    const urls = `${originalUrl} ${resultUrl}`;
    if (played.current === urls || !before.current?.complete || !after.current?.complete) return;
    played.current = urls; // setting an address loads the picture again
    before.current.src = originalUrl;
    after.current.src = resultUrl;
  };
  return { before, after, play };
}

/** Returns true if something has lasted for a while: what is quick needs no sign that it goes on. */
function useLate(going: boolean): boolean {
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    if (!going) return;
    const timer = setTimeout(() => setLate(true), LATE_MS);
    return () => {
      clearTimeout(timer);
      setLate(false);
    };
  }, [going]);
  return isLate;
}

/** Returns the size of a frame. */
function useRoom(frame: { current: HTMLElement | null }, shown: boolean): Size | null {
  const [room, setRoom] = useState<Size | null>(null);
  const measure = useCallback((element: HTMLElement) => setRoom({ width: element.clientWidth, height: element.clientHeight }), []);
  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    const observer = new ResizeObserver(() => measure(element));
    observer.observe(element);
    measure(element);
    return () => observer.disconnect();
  }, [frame, shown, measure]);
  return room;
}
