/** Gravity: a grid of nine places, and words such as face for what is found in the picture. */

import type { Param, Plain } from "./types";

const PLACES = [
  ["top-left", "top", "top-right"],
  ["left", "center", "right"],
  ["bottom-left", "bottom", "bottom-right"],
].flat();

interface Props {
  param: Param;
  value: Plain | undefined;
  id: string;
  described: string;
  onChange: (value: Plain | null) => void;
}

export function Gravity({ param, value, id, described, onChange }: Props) {
  const options = param.options ?? [];
  const current = value ?? "center";
  const words = options.filter((option) => !PLACES.includes(option));
  return (
    <div class="gravity" role="radiogroup" aria-labelledby={`${id}-label`} aria-describedby={described}>
      <div class="gravity-grid">
        {PLACES.map((place, index) => {
          const offered = options.includes(place);
          return (
            <label key={place} class={place === current ? "chosen" : ""} title={place}>
              <input
                type="radio"
                id={index === 0 ? id : undefined}
                name={id}
                aria-label={place}
                checked={place === current}
                onChange={() => onChange(offered ? place : null)}
              />
            </label>
          );
        })}
      </div>
      <div class="gravity-words">
        {words.map((word) => (
          <label key={word} class={word === current ? "chosen" : ""}>
            <input type="radio" name={id} checked={word === current} onChange={() => onChange(word)} />
            {word}
          </label>
        ))}
      </div>
    </div>
  );
}
