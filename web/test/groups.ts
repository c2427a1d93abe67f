/** Groups of parameters for tests, declared as the service declares its own. */

import type { Group, Param } from "../src/playground/types";

export function param(name: string, more: Partial<Param> = {}): Param {
  return { name, option: name, doc: "", unit: null, required: false, default: null, neutral: null, kind: "Number", ...more };
}

export function group(key: string, params: Param[], more: Partial<Group> = {}): Group {
  return { key, title: key, doc: "", filter: false, rules: [], params, ...more };
}

const percent = { minimum: 0, maximum: 100, required: true };
const pixels: Partial<Param> = { kind: "Integer", unit: "pixels", minimum: 1, maximum: 16384 };

export const RESIZE = group(
  "resize",
  [
    param("width", pixels),
    param("height", pixels),
    param("mode", { kind: "Choice", options: ["auto", "fit", "fill"], default: "auto" }),
    param("focus_x", { minimum: 0, maximum: 1 }),
    param("focus_y", { minimum: 0, maximum: 1 }),
    param("upscale", { kind: "Boolean", default: false }),
  ],
  {
    rules: [
      { rule: "AtLeastOne", names: ["width", "height"] },
      { rule: "Needs", name: "focus_x", other: "focus_y" },
      { rule: "RequiredWhen", choice: "mode", options: ["fit", "fill"], names: ["width", "height"], default: false },
    ],
  },
);

export const ADJUST = group("adjust", [
  param("exposure", { kind: "Integer", minimum: -100, maximum: 100, default: 0, neutral: 0 }),
  param("contrast", { kind: "Integer", minimum: -100, maximum: 100, default: 0, neutral: 0 }),
]);

export const SEPIA = group("sepia", [param("value", percent)], { filter: true });

export const BLUR = group(
  "blur",
  [
    param("mode", { kind: "Choice", options: ["gaussian", "motion"], required: true }),
    param("value", percent),
    param("angle", { kind: "Integer", minimum: 0, maximum: 360, unit: "degrees", default: 90 }),
  ],
  { filter: true, rules: [{ rule: "OnlyWhen", choice: "mode", options: ["motion"], names: ["angle"], default: false }] },
);

export const DUOTONE = group(
  "duotone",
  [param("light", { kind: "HexColor", required: true }), param("dark", { kind: "HexColor", required: true })],
  { filter: true },
);

export const WATERMARK = group(
  "watermark",
  [param("scale", { minimum: 0.01, maximum: 1 }), param("width", pixels), param("opacity", { minimum: 0, maximum: 1 })],
  { rules: [{ rule: "NotTogether", first: ["scale"], second: ["width"] }] },
);

export const OUTPUT = group(
  "output",
  [
    param("format", { kind: "Choice", options: ["jpg", "png", "webp", "auto"] }),
    param("quality", { kind: "Integer", minimum: 1, maximum: 100 }),
    param("lossless", { kind: "Boolean", default: false }),
  ],
  { rules: [{ rule: "NotWhen", choice: "format", options: ["jpg"], names: ["lossless"], values: [], default: false }] },
);

export const LAYERS = group("layers", [param("layers", { kind: "PartsKind", part: "layer", most: 100 })]);

/** In the order of application. */
export const GROUPS: Group[] = [RESIZE, ADJUST, SEPIA, BLUR, DUOTONE, LAYERS, OUTPUT];
