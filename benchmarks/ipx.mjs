// Serves a folder by ipx for benchmarks/service_others.py: node ipx.mjs PACKAGES FOLDER PORT
import cluster from "node:cluster";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";

const [packages, folder, port] = process.argv.slice(2);
const PROCESSES = 2;

if (cluster.isPrimary) {
  for (let i = 0; i < PROCESSES; i++) cluster.fork();
} else {
  const { createIPX, createIPXNodeServer, ipxFSStorage } = createRequire(join(packages, "."))("ipx");
  const ipx = createIPX({ storage: ipxFSStorage({ dir: folder }), sharpOptions: { jpegProgressive: false } });
  createServer(createIPXNodeServer(ipx)).listen(Number(port), "127.0.0.1");
}
