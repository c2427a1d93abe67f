import { defineConfig } from "vite";

// File names without hashes keep the committed files comparable; the service sends an ETag with each.
export default defineConfig({
  base: "./",
  build: {
    outDir: "../src/imgsvc_http/playground",
    emptyOutDir: true,
    assetsDir: ".",
    modulePreload: false,
    rollupOptions: {
      input: { app: "index.html", dashboard: "dashboard.html" },
      output: {
        entryFileNames: "[name].js",
        chunkFileNames: "shared.js",
        assetFileNames: "[name][extname]",
      },
    },
  },
  // `npm run dev` shows the sources beside a service that `imgsvc playground --port 8444` started.
  server: { proxy: { "^/(1\\.0|playground)/": "http://localhost:8444" } },
});
