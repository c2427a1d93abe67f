// Serves pictures by ipx for benchmarks/service_others.py: node ipx.mjs PACKAGES ORIGIN PORT
import cluster from "node:cluster";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";

const [packages, origin, port] = process.argv.slice(2);
const PROCESSES = 2;

if (cluster.isPrimary) {
  for (let i = 0; i < PROCESSES; i++) cluster.fork();
} else {
  const { createIPX, createIPXNodeServer, ipxFSStorage, ipxHttpStorage } = createRequire(join(packages, "."))("ipx");
  const ipx = createIPX({
    httpStorage: ipxHttpStorage({ domains: [new URL(origin).hostname] }),
    storage: ipxFSStorage({ dir: "." }),
    sharpOptions: { jpegProgressive: false },
  });
  createServer(createIPXNodeServer(ipx)).listen(Number(port), "127.0.0.1");
}
