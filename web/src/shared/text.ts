/** Numbers, sizes and times as text. */

export function bytes(count: number): string {
  if (count < 1000) return `${count} B`;
  if (count < 1e6) return `${(count / 1e3).toPrecision(3)} kB`;
  return `${(count / 1e6).toPrecision(3)} MB`;
}

/** Returns a round size, such as 50 kB. */
export function round(count: number): string {
  if (count < 1000) return `${count} B`;
  return count < 1e6 ? `${count / 1e3} kB` : `${count / 1e6} MB`;
}

export function milliseconds(count: number): string {
  return `${count < 10 ? count.toFixed(1) : Math.round(count)} ms`;
}

export function size(of: { width: number; height: number }): string {
  return `${of.width} × ${of.height}`;
}

/** Returns a change in percent, such as −42 %. */
export function change(before: number, after: number): string {
  const percent = Math.round((after / before - 1) * 100);
  return `${percent > 0 ? "+" : percent < 0 ? "−" : "±"}${Math.abs(percent)} %`;
}

const AGO = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });
const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86400],
  ["hour", 3600],
  ["minute", 60],
];

/** Returns how long ago a moment was, such as “5 min. ago”. */
export function ago(at: string, now = Date.now()): string {
  const seconds = Math.max(0, (now - Date.parse(at)) / 1000);
  const [unit, length] = UNITS.find(([, length]) => seconds >= length) ?? ["second", 1];
  return unit === "second" ? "just now" : AGO.format(-Math.floor(seconds / length), unit);
}

/** Formats a moment as date and time, in the time zone of the browser. */
export function moment(at: string): string {
  return new Date(at).toLocaleString("en", { dateStyle: "medium", timeStyle: "medium" });
}
