/** The difference of two pictures: DSSIM = 1 / SSIM − 1 of their luma, in windows of 8 × 8 pixels. */

import type { Size } from "./types";

const WINDOW = 8;
const STRIDE = 4;
const C1 = (0.01 * 255) ** 2;
const C2 = (0.03 * 255) ** 2;

export interface Luma extends Size {
  values: Float32Array;
}

/** Decodes a picture. Transparent parts are laid on white. */
export async function lumaOf(blob: Blob): Promise<Luma> {
  const bitmap = await createImageBitmap(blob);
  const { width, height } = bitmap;
  const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  if (!context) throw new Error("The browser has no canvas.");
  context.fillStyle = "#fff";
  context.fillRect(0, 0, width, height);
  context.drawImage(bitmap, 0, 0);
  bitmap.close();
  const { data } = context.getImageData(0, 0, width, height);
  const values = new Float32Array(width * height);
  for (let at = 0; at < values.length; at++) {
    const [red, green, blue] = [data[4 * at] ?? 0, data[4 * at + 1] ?? 0, data[4 * at + 2] ?? 0];
    values[at] = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  }
  return { width, height, values };
}

/** Returns 0 for equal pictures, and more if they differ more. It is NaN if their sizes differ. */
export function dssim(one: Luma, other: Luma): number {
  if (one.width !== other.width || one.height !== other.height) return Number.NaN;
  const window = Math.min(WINDOW, one.width, one.height);
  let sum = 0;
  let count = 0;
  for (let top = 0; top + window <= one.height; top += STRIDE) {
    for (let left = 0; left + window <= one.width; left += STRIDE) {
      sum += similarity(one, other, left, top, window);
      count += 1;
    }
  }
  return count / sum - 1;
}

/** Returns the SSIM of one window. */
function similarity(one: Luma, other: Luma, left: number, top: number, window: number): number {
  let [a, b, aa, bb, ab] = [0, 0, 0, 0, 0];
  for (let y = top; y < top + window; y++) {
    const row = y * one.width;
    for (let x = row + left; x < row + left + window; x++) {
      const p = one.values[x] ?? 0;
      const q = other.values[x] ?? 0;
      a += p;
      b += q;
      aa += p * p;
      bb += q * q;
      ab += p * q;
    }
  }
  const n = window * window;
  const [meanA, meanB] = [a / n, b / n];
  const varianceA = aa / n - meanA * meanA;
  const varianceB = bb / n - meanB * meanB;
  const covariance = ab / n - meanA * meanB;
  return (
    ((2 * meanA * meanB + C1) * (2 * covariance + C2)) /
    ((meanA * meanA + meanB * meanB + C1) * (varianceA + varianceB + C2))
  );
}
