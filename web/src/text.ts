/** How numbers are written. */

export function bytes(count: number): string {
  if (count < 1000) return `${count} B`;
  if (count < 1e6) return `${(count / 1e3).toPrecision(3)} kB`;
  return `${(count / 1e6).toPrecision(3)} MB`;
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
