/** Curves of bytes against look: where they lie in a chart, and the requests of their points. */

import type { Answer } from "../shared/service";
import { allowed, valuesOf, withFormat, withValue } from "./request";
import type { Group, Request } from "./types";

type Found = Answer<"/playground/scores/{source}", "post">["points"][number];
/** A file with a known look. */
export type Point = Found & { look: number };
/** Points of a format, from the worst look to the best. */
export type Curve = readonly Point[];
export type Curves = Readonly<Record<string, Curve>>;

/** The looks that a request can promise with the slider. */
export const LEAST = 30;
export const MOST = 95;
export const USUAL = 70;

/** Looks to ask for, so that each of the first ones tells much of the curve. */
const LOOKS = [70, 50, 85, 35, 60, 92];
/** Files of how many pixels a call makes at most, so that it takes some seconds: fewer in formats that take longer. */
const CALL_PIXELS = 20e6;
const SLOW: Readonly<Record<string, number>> = { avif: 4, heic: 16, webp: 2, jp2: 2 };
const BEST = 100;
const TICKS = [1, 2, 5];
const WORDS = { fair: 50, good: 70, fine: 80, same: 90 };
const NO_SIZE = { width: 0, height: 0 };

/** Returns true if a format can promise a look. */
export function hasLook(output: Group, format: string): boolean {
  return allowed(output, { format }).some((param) => param.name === "look");
}

/** Returns the looks of each call of the service, for results of some pixels. */
export function calls(format: string, pixels: number): number[][] {
  const count = Math.min(LOOKS.length, Math.max(1, Math.floor(CALL_PIXELS / (pixels * (SLOW[format] ?? 1)))));
  const starts = LOOKS.map((_, index) => index).filter((index) => index % count === 0);
  return starts.map((start) => LOOKS.slice(start, start + count));
}

/** Returns a curve with more points, without those whose look is not known. */
export function joined(curve: Curve, more: readonly Found[]): Curve {
  const known = more.filter((point): point is Point => point.look !== null);
  return [...curve, ...known].sort((one, other) => one.look - other.look);
}

/** Returns the bytes that a look takes by the points beside it, or null if there are not two. */
export function bytesAt(curve: Curve, look: number): number | null {
  const above = curve.findIndex((point) => point.look >= look);
  const [low, high] = [curve[above - 1], curve[above]];
  if (high?.look === look) return high.bytes;
  if (!low || !high) return null;
  const share = (look - low.look) / (high.look - low.look);
  return Math.round(low.bytes * (high.bytes / low.bytes) ** share);
}

/** The bytes that a chart shows. Looks go from LEAST to BEST. */
export interface Frame {
  least: number;
  most: number;
}

/** Returns the frame around curves, or null if they have nothing to show. */
export function frameOf(curves: Curves): Frame | null {
  const sizes = Object.values(curves).flatMap((curve) => curve.filter(({ look }) => look >= LEAST).map(({ bytes }) => bytes));
  return sizes.length ? { least: Math.min(...sizes) / 1.1, most: Math.max(...sizes) * 1.1 } : null;
}

/** Returns the sizes that stand beside a chart: 1, 2 and 5 times the powers of 10. */
export function ticks({ least, most }: Frame): number[] {
  const powers = [...Array(Math.ceil(Math.log10(most)) + 1).keys()];
  const within = powers.flatMap((power) => TICKS.map((step) => step * 10 ** power)).filter((size) => size >= least && size <= most);
  return most / least > 20 ? within.filter((size) => String(size).startsWith("1")) : within;
}

/** Returns where a look lies in a chart, in percent from the left. */
export function across(look: number): number {
  return ((look - LEAST) / (BEST - LEAST)) * 100;
}

/** Returns where a size lies in a chart, in percent from the top. Its scale is logarithmic. */
export function down({ least, most }: Frame, bytes: number): number {
  return (1 - Math.log(bytes / least) / Math.log(most / least)) * 100;
}

/** Returns the look at a place of a chart, in percent from the left. */
export function lookAt(place: number): number {
  return Math.min(MOST, Math.max(LEAST, Math.round(LEAST + (place / 100) * (BEST - LEAST))));
}

/** Returns the format whose curve is nearest to a place at a look, in percent from the top, if any has that look. */
export function nearest(curves: Curves, frame: Frame, look: number, place: number): string | undefined {
  const apart = Object.entries(curves).flatMap(([format, curve]): [string, number][] => {
    const bytes = bytesAt(curve, look);
    return bytes === null ? [] : [[format, Math.abs(down(frame, bytes) - place)]];
  });
  return apart.sort(([, one], [, other]) => one - other)[0]?.[0];
}

/** Returns a request in a format, whose quality is left open: without what promises anything of its size or look. */
export function open(request: Request, groups: Group[], format: string): Request {
  const { output, ...others } = withFormat(request, groups, format);
  const promises = ["quality", "look", "lossless", "max_bytes", "if_smaller", "keep_pixels", "transcode"];
  const left = Object.entries(output ?? {}).filter(([name]) => !promises.includes(name));
  return { ...others, output: Object.fromEntries(left) };
}

/** Returns a request in a format at a look. */
export function atLook(request: Request, groups: Group[], format: string, look: number): Request {
  const group = groups.find(({ key }) => key === "output");
  const opened = open(request, groups, format);
  return group ? withValue(opened, group, "look", look, NO_SIZE) : opened;
}

/** Returns the look that a request promises, if it does. */
export function promised(request: Request): number | null {
  const { look, quality } = valuesOf(request, "output");
  const given = quality === "auto" ? "good" : look;
  const found = typeof given === "string" ? WORDS[given as keyof typeof WORDS] : given;
  return typeof found === "number" ? found : null;
}

/** Returns what a look means to the eye. */
export function wordOf(look: number): string {
  const reached = Object.entries(WORDS).filter(([, least]) => look >= least);
  return reached.at(-1)?.[0] ?? "poor";
}

/** Describes curves for those who do not see them. */
export function described(curves: Curves, size: (bytes: number) => string): string {
  const parts = Object.entries(curves).flatMap(([format, curve]) => {
    const [worst, best] = [curve[0], curve.at(-1)];
    if (!worst || !best) return [];
    return `${format} ${[...new Set([worst, best])].map(({ bytes, look }) => `${size(bytes)} at ${Math.round(look)}`).join(" to ")}`;
  });
  return `Bytes against look: ${parts.join("; ") || "nothing yet"}`;
}
