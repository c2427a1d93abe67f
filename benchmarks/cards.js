// Draws cards by Satori and resvg for benchmarks/layers.py: a JSON request a line, a JSON answer a line.
const fs = require("fs");
const readline = require("readline");
const satori = require("satori").default;
const { Resvg } = require("@resvg/resvg-js");

const [photo, logo] = process.argv.slice(2).map((path) => {
  const kind = path.endsWith(".png") ? "png" : "jpeg";
  return `data:image/${kind};base64,${fs.readFileSync(path).toString("base64")}`;
});
const fonts = [400, 700].map((weight) => {
  const path = require.resolve(`@fontsource/inter/files/inter-latin-${weight}-normal.woff`);
  return { name: "Inter", weight, style: "normal", data: fs.readFileSync(path) };
});

const place = (left, top, more) => ({ position: "absolute", left, top, ...more });
const image = (src, left, top, width, height) => ({
  type: "img",
  props: { src, width, height, style: place(left, top, {}) },
});
const words = (text, left, top, size, weight) => ({
  type: "div",
  props: { children: text, style: place(left, top, { color: "white", fontSize: size, fontWeight: weight, lineHeight: 1.2 }) },
});

async function card({ width, height, title, subtitle }) {
  const children = [
    image(photo, 0, 0, width, height),
    image(logo, width - 240, 40, 200, 150),
    words(title, 60, 440, 64, 700),
    words(subtitle, 60, 530, 32, 400),
  ];
  const style = { width, height, display: "flex", fontFamily: "Inter" };
  const svg = await satori({ type: "div", props: { children, style } }, { width, height, fonts });
  return new Resvg(svg, { font: { loadSystemFonts: false } }).render().asPng();
}

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const request = JSON.parse(line);
    const [wall, cpu] = [process.hrtime.bigint(), process.cpuUsage()];
    let data;
    for (let i = 0; i < request.repeats; i++) data = await card(request);
    const used = process.cpuUsage(cpu);
    if (request.keep) fs.writeFileSync(request.keep, data);
    const answer = {
      wall: Number(process.hrtime.bigint() - wall) / 1e9 / request.repeats,
      cpu: (used.user + used.system) / 1e6 / request.repeats,
    };
    process.stdout.write(JSON.stringify(answer) + "\n");
  }
})();
