/** The control of one parameter. */

import type { ComponentChildren, TargetedEvent, TargetedInputEvent } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { FontField } from "./font";
import { Gravity } from "./gravity";
import { converted, isPercent, percent, wholeOf } from "./layers";
import { label } from "./search";
import { fromSlider, rangeOf, STEPS, toSlider, usualOf } from "./slider";
import type { Param, Plain, Size, Values } from "./types";

export interface ControlProps {
  param: Param;
  value: Plain | undefined;
  /** All values of its group. */
  values: Values;
  size: Size;
  error: string | undefined;
  /** It cannot be left out. */
  fixed?: boolean;
  onChange: (value: Plain | null) => void;
}

/** A label, the input for this kind of parameter, and below it an error of the service. */
export function Control({ param, value, values, size, error, fixed, onChange }: ControlProps) {
  const id = useId();
  const given = value !== undefined;
  const [unreadable, setUnreadable] = useState(false);
  useEffect(() => {
    if (given) setUnreadable(false);
  }, [given]);
  const wrong = unreadable && !given ? "must be a number" : error;
  const described = wrong ? `${id}-error` : `${id}-doc`;
  const field = { param, value, values, size, id, described, invalid: Boolean(wrong), onChange, setUnreadable };
  return (
    <div class={`control${given ? " given" : ""}`} data-param={param.option}>
      <div class="control-head">
        <label for={id} id={`${id}-label`} title={param.doc}>
          {label(param)}
        </label>
        {given && !fixed && (
          <button type="button" class="clear" aria-label={`Reset ${label(param)}`} onClick={() => onChange(null)}>
            ×
          </button>
        )}
      </div>
      <Field {...field} />
      <span id={`${id}-doc`} class="doc hidden">
        {param.doc}
      </span>
      {wrong && (
        <p id={`${id}-error`} class="error">
          {wrong}
        </p>
      )}
    </div>
  );
}

export interface FieldProps {
  param: Param;
  value: Plain | undefined;
  values: Values;
  size: Size;
  id: string;
  described: string;
  invalid: boolean;
  onChange: (value: Plain | null) => void;
  /** Reports if the typed text is not a number. */
  setUnreadable: (unreadable: boolean) => void;
}

function Field(props: FieldProps) {
  switch (props.param.kind) {
    case "Integer":
    case "Number":
      return <NumberField {...props} />;
    case "Boolean":
      return <Switch {...props} />;
    case "Choice":
      if (props.param.options?.includes("top-left")) return <Gravity {...props} />;
      return <Choice {...props} />;
    case "HexColor":
      return <ColorField {...props} />;
    case "LengthKind":
      return <LengthField {...props} />;
    case "Content":
      return <Letters {...props} />;
    default:
      return props.param.name === "font" ? <FontField {...props} /> : <TextField {...props} />;
  }
}

/** Returns properties of a field that keep the typed text until it is finished, also if the field is drawn again. */
export function useTyped(value: string, onDone: (text: string) => void) {
  const [typed, setTyped] = useState<string | null>(null);
  return {
    value: typed ?? value,
    onInput: (event: TargetedInputEvent<HTMLInputElement>) => setTyped(event.currentTarget.value),
    onChange: (event: TargetedEvent<HTMLInputElement>) => {
      setTyped(null);
      onDone(event.currentTarget.value);
    },
    onBlur: () => setTyped(null),
  };
}

const UNSET = "unset";
const UNSET_FORMAT = "as the source";

function NumberField({ param, value, values, size, id, described, invalid, onChange, setUnreadable, unit }: FieldProps & { unit?: ComponentChildren }) {
  const range = rangeOf(param, size);
  const usual = usualOf(param, values, size);
  const current = typeof value === "number" ? value : usual;
  const place = Math.min(Math.max(current ?? 0, range.minimum), range.maximum);
  const share = (of: number) => toSlider(range, of) / STEPS;
  const start = current === undefined ? place : range.minimum;
  const origin = typeof param.neutral === "number" ? param.neutral : start;
  const [from, to] = value === undefined ? [place, place] : [Math.min(place, origin), Math.max(place, origin)];
  const entering = useRef(false);
  const typed = useTyped(typeof value === "number" ? String(value) : "", (text) =>
    onChange(text === "" || Number.isNaN(Number(text)) ? null : Number(text)),
  );
  return (
    <div class="number">
      <div class={`slider${current === undefined ? " unset" : ""}`} style={{ "--from": share(from), "--to": share(to), "--neutral": share(origin) }}>
        <input
          type="range"
          aria-labelledby={`${id}-label`}
          aria-describedby={described}
          aria-valuetext={current === undefined ? UNSET : `${current}${param.unit ? ` ${param.unit}` : ""}`}
          min={0}
          max={STEPS}
          step={STEPS / range.steps}
          value={toSlider(range, place)}
          onInput={(event) => onChange(fromSlider(range, Number(event.currentTarget.value)))}
          onDblClick={() => onChange(null)}
        />
        {typeof param.neutral === "number" && <span class="neutral" aria-hidden="true" />}
      </div>
      <input
        type="number"
        id={id}
        aria-describedby={described}
        aria-invalid={invalid}
        min={param.minimum}
        max={param.maximum}
        step="any"
        placeholder={String(usual ?? UNSET)}
        {...typed}
        onPointerDown={(event) => {
          entering.current = event.currentTarget !== document.activeElement;
        }}
        onClick={(event) => {
          if (entering.current) event.currentTarget.select(); // a second click sets the cursor
        }}
        onBlur={(event) => {
          typed.onBlur();
          setUnreadable(event.currentTarget.validity.badInput); // then its value is empty
        }}
      />
      {unit ?? <span class="unit">{shortUnit(param.unit)}</span>}
    </div>
  );
}

const MOST_PERCENT = 100; // more is possible, and rare

/** A length as a number of pixels or percent, with the choice of the unit. */
function LengthField(props: FieldProps) {
  const { param, value, size, onChange } = props;
  const [chosen, setChosen] = useState("pixels");
  const unit = value === undefined ? chosen : isPercent(value) ? "percent" : "pixels";
  const { least = 0, most = MOST_PERCENT } = param;
  const range: Partial<Param> =
    unit === "pixels"
      ? { kind: "Integer" }
      : { kind: "Number", minimum: Math.max(least, -MOST_PERCENT), maximum: Math.min(most, MOST_PERCENT), default: null };
  return (
    <NumberField
      {...props}
      param={{ ...param, ...range, unit }}
      value={isPercent(value) ? parseFloat(value) : value}
      onChange={(next) => onChange(typeof next === "number" && unit === "percent" ? percent(next) : next)}
      unit={
        <select
          class="unit"
          aria-label={`Unit of ${label(param)}`}
          value={unit}
          onChange={(event) => {
            setChosen(event.currentTarget.value);
            if (value !== undefined) onChange(converted(value, wholeOf(param.name, size)));
          }}
        >
          <option value="pixels">px</option>
          <option value="percent">%</option>
        </select>
      }
    />
  );
}

/** Letters of several lines. The picture follows while they are typed. */
function Letters({ value, id, described, invalid, onChange }: FieldProps) {
  return (
    <textarea
      id={id}
      aria-describedby={described}
      aria-invalid={invalid}
      rows={2}
      value={typeof value === "string" ? value : ""}
      onInput={(event) => onChange(event.currentTarget.value)}
    />
  );
}

const SHORT_UNITS: Readonly<Record<string, string>> = { pixels: "px", percent: "%", degrees: "°", bytes: "B" };

function shortUnit(unit: string | null): string {
  return unit ? (SHORT_UNITS[unit] ?? "") : "";
}

function Switch({ param, value, id, described, onChange }: FieldProps) {
  const checked = (value ?? param.default) === true;
  return (
    <input
      type="checkbox"
      role="switch"
      id={id}
      aria-describedby={described}
      checked={checked}
      onChange={(event) => onChange(event.currentTarget.checked)}
    />
  );
}

const MOST_BUTTONS = 4;

function Choice({ param, value, id, described, invalid, onChange }: FieldProps) {
  const options = param.options ?? [];
  const current = value ?? param.default ?? "";
  if (options.length > MOST_BUTTONS) {
    return (
      <select
        id={id}
        aria-describedby={described}
        aria-invalid={invalid}
        value={String(current)}
        onChange={(event) => onChange(event.currentTarget.value || null)}
      >
        {!param.required && param.default === null && <option value="">{param.name === "format" ? UNSET_FORMAT : UNSET}</option>}
        {options.map((option) => (
          <option key={option} value={option}>
            {option}
          </option>
        ))}
      </select>
    );
  }
  return (
    <div class="choice" role="radiogroup" aria-labelledby={`${id}-label`} aria-describedby={described}>
      {options.map((option, index) => (
        <label key={option} class={option === current ? "chosen" : ""}>
          <input
            type="radio"
            id={index === 0 ? id : undefined}
            name={id}
            checked={option === current}
            onChange={() => onChange(option)}
          />
          {option}
        </label>
      ))}
    </div>
  );
}

function ColorField({ param, value, id, described, invalid, onChange }: FieldProps) {
  const text = typeof value === "string" ? value : "";
  const usual = typeof param.default === "string" ? param.default : "";
  const typed = useTyped(text, (next) => onChange(next.replace("#", "") || null));
  return (
    <div class="color-field">
      <input
        type="color"
        aria-labelledby={`${id}-label`}
        value={opaque(text || usual)}
        onInput={(event) => onChange(event.currentTarget.value.slice(1))}
      />
      <input
        type="text"
        id={id}
        aria-describedby={described}
        aria-invalid={invalid}
        spellcheck={false}
        maxLength={9}
        placeholder={usual || (param.alpha ? "RRGGBB or AARRGGBB" : "RRGGBB")}
        {...typed}
      />
    </div>
  );
}

/** Returns a color in the form of color inputs. */
function opaque(color: string): string {
  const hex = color.length === 3 ? color.replace(/./g, "$&$&") : color.slice(-6);
  return `#${hex.padEnd(6, "0")}`;
}

function TextField({ param, value, id, described, invalid, onChange }: FieldProps) {
  const typed = useTyped(typeof value === "string" ? value : "", (next) => onChange(next || null));
  return (
    <input
      type="text"
      id={id}
      aria-describedby={described}
      aria-invalid={invalid}
      spellcheck={false}
      placeholder={param.kind === "AspectRatio" ? "16:9" : ""}
      {...typed}
    />
  );
}
