/** The choice of a font: family by a sample, weight and style. */

import { useEffect, useRef, useState } from "preact/hooks";
import { told } from "../shared/service";
import { families as knownFamilies, fontSample } from "./calls";
import { type FieldProps, useTyped } from "./control";
import { fontText, parsedFont, WEIGHTS } from "./fonts";

const USUAL = "Inter";

export function FontField({ value, id, described, invalid, onChange }: FieldProps) {
  const [families, setFamilies] = useState<string[]>([]);
  const [failure, setFailure] = useState("");
  const [open, setOpen] = useState(false);
  useEffect(() => {
    knownFamilies().then(setFamilies, (reason: unknown) => setFailure(told(reason)));
  }, []);
  const text = typeof value === "string" ? value : "";
  const typed = useTyped(text, (next) => onChange(next || null));
  const font = parsedFont(text || USUAL, families);
  const weights = WEIGHTS.some((weight) => weight === font.weight) ? WEIGHTS : [...WEIGHTS, font.weight];
  return (
    <div class="font">
      <div class="font-name">
        <input
          type="text"
          id={id}
          aria-describedby={described}
          aria-invalid={invalid}
          spellcheck={false}
          placeholder={USUAL}
          {...typed}
        />
        <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
          Fonts
        </button>
      </div>
      <div class="font-style">
        <select
          aria-label="Weight"
          value={font.weight}
          onChange={(event) => onChange(fontText({ ...font, weight: event.currentTarget.value }))}
        >
          {weights.map((weight) => (
            <option key={weight} value={weight}>
              {weight}
            </option>
          ))}
        </select>
        <label>
          <input
            type="checkbox"
            checked={font.italic}
            onChange={(event) => onChange(fontText({ ...font, italic: event.currentTarget.checked }))}
          />
          Italic
        </label>
      </div>
      {failure && <p class="error">{failure}</p>}
      {open && (
        <div class="families" role="radiogroup" aria-label="Families of fonts">
          {families.length === 0 && !failure && <p class="note">The service has no fonts for texts.</p>}
          {families.map((family) => (
            <label key={family} class={family === font.family ? "chosen" : ""}>
              <input
                type="radio"
                name={`${id}-family`}
                checked={family === font.family}
                onChange={() => onChange(fontText({ ...font, family }))}
              />
              {family}
              <Sample family={family} />
            </label>
          ))}
        </div>
      )}
    </div>
  );
}

/** The sample of a family. It is loaded when it comes into sight. */
function Sample({ family }: { family: string }) {
  const frame = useRef<HTMLSpanElement>(null);
  const [url, setUrl] = useState("");
  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    const observer = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      fontSample(family).then(setUrl, () => undefined); // the name stands above it
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [family]);
  return (
    <span class="sample" ref={frame}>
      {url && <img src={url} alt="" />}
    </span>
  );
}
