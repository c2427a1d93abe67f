// A provider for Nuxt Image 2. It runs in browsers too, which must not know a secret: its URLs are unsigned.
//
//   // nuxt.config.ts
//   image: {
//     provider: "imgsvc",
//     providers: { imgsvc: { provider: "~/nuxt-provider.mjs", options: { baseURL: "https://img.example.org" } } },
//   }
//
//   <NuxtImg src="/photos/shoe.jpg" width="400" height="300" fit="cover" alt="A shoe" />

const MODES = { cover: "fit", contain: "fill", fill: "stretch", inside: "auto" };

function getImage(src, { modifiers = {}, baseURL = "" }) {
  const { width = "", height = "", fit, format = "auto", quality } = modifiers;
  const options = [`format:${format}`];
  if (width || height) options.push(`resize:${width}x${height}`);
  if (width && height && fit) options.push(`mode:${MODES[fit] ?? fit}`);
  if (quality) options.push(`quality:${quality}`);
  const source = /^[a-z][a-z0-9+.-]*:/i.test(src)
    ? `plain/${encodeURIComponent(src)}`
    : src.replace(/^\//, "").split("/").map(encodeURIComponent).join("/");
  return { url: `${baseURL}/1.0/image/unsigned/${options.join("/")}/${source}` };
}

export default () => ({ getImage });
