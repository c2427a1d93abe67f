// A provider for Nuxt Image 2. It runs in browsers too, which must not know a secret: its URLs are unsigned, and
// so they name presets only. A width is the preset w400 and the like.
//
//   // nuxt.config.ts
//   image: {
//     provider: "imgsvc",
//     providers: { imgsvc: { provider: "~/nuxt-provider.mjs", options: { baseURL: "https://img.example.org" } } },
//   }
//
//   <NuxtImg src="/photos/shoe.jpg" :modifiers="{ preset: 'card' }" width="400" alt="A shoe" />
//
//   # imgsvc.toml
//   [presets.card]
//   filter = {sepia = {value = 60}}
//   [presets.w400]
//   resize = {width = 400}

function getImage(src, { modifiers = {}, baseURL = "" }) {
  const { preset = [], width } = modifiers;
  const presets = [preset].flat();
  if (width) presets.push(`w${width}`);
  const options = presets.map((name) => `preset:${encodeURIComponent(name)}`);
  const source = src.replace(/^\//, "").split("/").map(encodeURIComponent);
  return { url: [`${baseURL}/1.0/image/unsigned`, ...options, ...source].join("/") };
}

export default () => ({ getImage });
