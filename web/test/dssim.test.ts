import { expect, test } from "vitest";
import { dssim, type Luma } from "../src/playground/dssim";

function picture(value: (x: number, y: number) => number, width = 32, height = 24): Luma {
  const values = Float32Array.from({ length: width * height }, (_, at) => value(at % width, Math.floor(at / width)));
  return { width, height, values };
}

const waves = picture((x, y) => 128 + 60 * Math.sin(x) * Math.cos(y / 3));
const noisy = (by: number) => picture((x, y) => 128 + 60 * Math.sin(x) * Math.cos(y / 3) + by * ((7 * x + 11 * y) % 5));

test("equal pictures differ by nothing", () => {
  expect(dssim(waves, waves)).toBeCloseTo(0, 12);
});

test("the more noise, the larger the difference, in either direction", () => {
  const [little, much] = [dssim(waves, noisy(2)), dssim(waves, noisy(20))];
  expect(little).toBeGreaterThan(0);
  expect(much).toBeGreaterThan(little);
  expect(dssim(noisy(2), waves)).toBeCloseTo(little, 12);
});

test("flat pictures differ by their luminance as SSIM defines it", () => {
  const c1 = (0.01 * 255) ** 2;
  const ssim = (2 * 100 * 120 + c1) / (100 ** 2 + 120 ** 2 + c1);
  expect(dssim(picture(() => 100), picture(() => 120))).toBeCloseTo(1 / ssim - 1, 9);
});

test("pictures smaller than a window are compared as a whole", () => {
  const tiny = (value: number) => picture(() => value, 3, 5);
  expect(dssim(tiny(10), tiny(10))).toBeCloseTo(0, 12);
  expect(dssim(tiny(10), tiny(200))).toBeGreaterThan(1);
});

test("pictures of other sizes cannot be compared", () => {
  expect(dssim(waves, picture(() => 0, 8, 8))).toBeNaN();
});
