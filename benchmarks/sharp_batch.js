// Makes thumbnails of a folder for benchmarks/batch.py: two at a time, each with one thread.
const fs = require("fs");
const path = require("path");
const sharp = require("sharp");

const [source, target, width] = process.argv.slice(2);
const names = fs.readdirSync(source);

sharp.concurrency(1);
sharp.cache(false);
fs.mkdirSync(target);

async function work() {
  for (let name = names.pop(); name !== undefined; name = names.pop()) {
    const image = sharp(path.join(source, name)).resize(Number(width));
    await image.jpeg({ quality: 80 }).toFile(path.join(target, name));
  }
}

Promise.all([work(), work()]);
