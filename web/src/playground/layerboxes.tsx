/** Layers on the picture: chosen by a click, moved by dragging or by the arrow keys. */

import { useRef } from "preact/hooks";
import type { Change } from "./history";
import { boxAfter, coversAll, movedBy, titleOf } from "./layers";
import type { Shown } from "./preview";
import { arrayOf, itemsOf, without } from "./request";
import type { LayerBox, Request, Size, Value, Values } from "./types";
import type { Point } from "./view";

const KEY = "layers";
const STEP = 1;
const LARGE_STEP = 10;

interface Props {
  shown: Shown;
  request: Request;
  selected: number | null;
  onSelect: (place: number | null) => void;
  onChange: (change: Change, touched?: string) => void;
}

/** The boxes of layers. They follow the request at once, and the picture as soon as it is made. */
export function LayerBoxes({ shown, request, selected, onSelect, onChange }: Props) {
  const layers = itemsOf(request, KEY);
  const { layers: boxes = [], output } = shown.result.facts;
  const before = arrayOf(shown.document[KEY] as Value | undefined);
  if (boxes.length !== layers.length || before.length !== layers.length) return null;
  const edit = (place: number, next: (items: readonly Values[]) => Values[]) =>
    onChange((request) => {
      const items = next(itemsOf(request, KEY));
      return items.length ? { ...request, [KEY]: { [KEY]: items } } : without(request, KEY);
    }, `${KEY}[${place}].place`);
  return (
    <div class="layer-boxes">
      {boxes.map((box, place) => {
        const [layer, old] = [layers[place], before[place]];
        if (!layer || !old) return null;
        return (
          <Handle
            key={place}
            name={`Layer ${place + 1}: ${titleOf(layer)}`}
            box={boxAfter(box, old, layer, output)}
            frame={output}
            layer={layer}
            selected={selected === place}
            onSelect={() => onSelect(place)}
            onPlace={(next) => edit(place, (items) => items.with(place, next))}
            onRemove={() => {
              onSelect(null);
              edit(place, (items) => items.toSpliced(place, 1));
            }}
          />
        );
      })}
    </div>
  );
}

interface HandleProps {
  name: string;
  box: LayerBox;
  frame: Size;
  layer: Values;
  selected: boolean;
  onSelect: () => void;
  onPlace: (layer: Values) => void;
  onRemove: () => void;
}

function Handle({ name, box, frame, layer, selected, onSelect, onPlace, onRemove }: HandleProps) {
  const drag = useRef<{ from: Point; layer: Values } | null>(null);
  const share = (pixels: number, whole: number) => `${(100 * pixels) / whole}%`;
  // The picture below a layer that covers it can still be dragged.
  const passive = !selected && coversAll(box, frame);
  return (
    <button
      type="button"
      class={`layer-box${selected ? " selected" : ""}${passive ? " passive" : ""}`}
      aria-label={`${name}. Arrow keys move it.`}
      aria-pressed={selected}
      style={{
        left: share(box.left, frame.width),
        top: share(box.top, frame.height),
        width: share(box.width, frame.width),
        height: share(box.height, frame.height),
      }}
      onClick={onSelect}
      onPointerDown={(event) => {
        if (event.button !== 0) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        onSelect();
        drag.current = { from: { x: event.clientX, y: event.clientY }, layer };
      }}
      onPointerMove={(event) => {
        const area = event.currentTarget.parentElement?.getBoundingClientRect();
        if (!drag.current || !area) return;
        const { from, layer: start } = drag.current;
        const by = {
          x: Math.round(((event.clientX - from.x) / area.width) * frame.width),
          y: Math.round(((event.clientY - from.y) / area.height) * frame.height),
        };
        onPlace(by.x || by.y ? movedBy(start, by, frame) : start);
      }}
      onPointerUp={() => (drag.current = null)}
      onPointerCancel={() => (drag.current = null)}
      onKeyDown={(event) => {
        const step = event.shiftKey ? LARGE_STEP : STEP;
        const by = {
          ArrowLeft: { x: -step, y: 0 },
          ArrowRight: { x: step, y: 0 },
          ArrowUp: { x: 0, y: -step },
          ArrowDown: { x: 0, y: step },
        }[event.key];
        if (by) onPlace(movedBy(layer, by, frame));
        else if (event.key === "Delete" || event.key === "Backspace") onRemove();
        else return;
        event.preventDefault();
      }}
    />
  );
}
