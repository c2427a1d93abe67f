// Runs sharp for benchmarks/sharp.py: one JSON request a line on stdin, one JSON answer a line on stdout.
const fs = require("fs");
const readline = require("readline");
const sharp = require("sharp");

sharp.concurrency(1);
sharp.cache(false);

const buffers = new Map();

function buffer(path) {
  if (!buffers.has(path)) buffers.set(path, fs.readFileSync(path));
  return buffers.get(path);
}

function pipeline({
  input, buffered, options, extract, turn, crop, resize, blur, convolve, mark, layers, format, save,
}) {
  let image = sharp(buffered ? buffer(input) : input, options);
  if (extract) image = image.extract(extract);
  if (turn) image = image.rotate(90);
  if (crop) image = image.rotate(90).extract(crop);
  if (resize) image = image.resize({ fit: "fill", ...resize });
  if (blur) image = image.blur(blur);
  if (convolve) image = image.convolve(convolve);
  if (mark) image = image.composite([{ input: buffer(mark), gravity: "southeast" }]);
  if (layers) image = image.composite(layers.map((layer) => ({ ...layer, input: buffer(layer.input) })));
  return image.toFormat(format, save);
}

async function run(request) {
  const wall = process.hrtime.bigint();
  const cpu = process.cpuUsage();
  for (let i = 0; i < request.repeats; i++) {
    const image = pipeline(request);
    const data = await (request.output ? image.toFile(request.output) : image.toBuffer());
    if (request.keep) fs.writeFileSync(request.keep, data);
  }
  const used = process.cpuUsage(cpu);
  return {
    wall: Number(process.hrtime.bigint() - wall) / 1e9 / request.repeats,
    cpu: (used.user + used.system) / 1e6 / request.repeats,
    peak_memory: (/VmHWM:\s*(\d+)/.exec(fs.readFileSync("/proc/self/status", "utf8"))[1] * 1024) / 1e6,
  };
}

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    process.stdout.write(JSON.stringify(await run(JSON.parse(line))) + "\n");
  }
})();
