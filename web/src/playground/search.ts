/** Finds parameters by their names, by what they do, and by other words for them. */

import { nameOf } from "./request";
import type { Group, Param } from "./types";

/** Words that people search for, by group or by group and parameter. */
export const OTHER_WORDS: Readonly<Record<string, string>> = {
  "adjust.brightness": "darken",
  "adjust.exposure": "darken brighten",
  "adjust.invert": "negative",
  "adjust.opacity": "transparency transparent",
  "adjust.saturation": "grayscale black and white b&w bw desaturate",
  "adjust.sharpen": "sharpness clarity noise denoise",
  "adjust.temperature": "white balance cold",
  "auto": "improve optimize white balance",
  "blur": "smooth soften gaussian noise denoise",
  "border": "frame outline stroke",
  "border.radius": "round corners",
  "canvas": "extend letterbox square",
  "crop": "cut square",
  "duotone": "two colors",
  "flip": "mirror",
  "isolate": "color splash selective",
  "layers": "text words letters caption title font typography logo overlay shape rectangle circle line gradient fade drop shadow",
  "mask": "round corners circle avatar",
  "monochrome": "grayscale black and white b&w bw tint",
  "output.colors": "palette quantize",
  "output.encoding": "progressive interlaced",
  "output.flatten": "transparency transparent remove alpha",
  "output.format": "convert file type jpeg animation animated frames",
  "output.max_bytes": "file size filesize weight kilobytes kb limit",
  "output.metadata": "exif gps location copyright icc color profile",
  "output.quality": "compression compress",
  "output.subsampling": "chroma",
  "padding": "margin space",
  "pixellate": "pixelate mosaic censor",
  "redact": "censor anonymize hide blur pixelate faces license plates privacy",
  "resize": "size shrink enlarge thumbnail square",
  "resize.gravity": "focal point face",
  "resize.mode": "contain cover object-fit",
  "rotate": "turn straighten tilt",
  "scale": "size shrink percent",
  "sepia": "vintage retro old photo brown",
  "trim": "remove border whitespace",
  "watermark": "logo overlay stamp",
};

const BRITISH: [RegExp, string][] = [
  [/colour/g, "color"], // codespell:ignore
  [/grey/g, "gray"], // codespell:ignore
  [/centre/g, "center"],
];

export interface Found {
  group: Group;
  params: Param[];
}

/** Returns what a search finds of the offered parameters: first the groups that it names, with all of them. */
export function found(groups: Group[], search: string, offered: (group: Group) => Param[]): Found[] {
  const words = plain(search).split(/\s+/).filter(Boolean);
  const all = groups.map((group) => ({ group, params: offered(group), named: has(textOf(group), words) }));
  const some = all.map((item) => ({
    ...item,
    params: item.named ? item.params : item.params.filter((param) => has(textOf(item.group, param), words)),
  }));
  const kept = some.filter(({ params }) => params.length > 0);
  return [...kept.filter(({ named }) => named), ...kept.filter(({ named }) => !named)];
}

/** Returns the text in which a group, or a parameter of it, is found. */
function textOf({ key, title }: Group, param?: Param): string {
  const name = nameOf(key);
  const ofGroup = `${title} ${OTHER_WORDS[name] ?? ""}`;
  if (!param) return ofGroup;
  const other = OTHER_WORDS[`${name}.${param.name}`] ?? "";
  return [ofGroup, label(param), param.doc, other, ...(param.options ?? [])].join(" ");
}

/** Returns the name of a parameter for people. */
export function label(param: Pick<Param, "name">): string {
  const words = param.name.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function has(text: string, words: string[]): boolean {
  const known = plain(text);
  return words.every((word) => known.includes(word));
}

function plain(text: string): string {
  return BRITISH.reduce((found, [british, american]) => found.replace(british, american), text.toLowerCase());
}
