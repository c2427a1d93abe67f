// A loader for Next.js that signs URLs. It works on the server only, where the secret is:
//
//   import { getImageProps } from "next/image";
//   import loader from "./next-loader.mjs";
//
//   export default function Page() {
//     const { props } = getImageProps({ loader, src: "/photos/shoe.jpg", width: 400, height: 300, alt: "A shoe" });
//     return <img {...props} alt={props.alt} />;
//   }

import { createHmac } from "node:crypto";

const { IMGSVC_BASE, IMGSVC_KEY_ID, IMGSVC_SIGNING_SECRET } = process.env;

export default function loader({ src, width, quality = 75 }) {
  const source = /^[a-z][a-z0-9+.-]*:/i.test(src)
    ? `plain/${encodeURIComponent(src)}`
    : src.replace(/^\//, "").split("/").map(encodeURIComponent).join("/");
  const text = `/resize:${width}x/quality:${quality}/format:auto/${source}`;
  const signature = createHmac("sha256", IMGSVC_SIGNING_SECRET).update(text).digest("base64url");
  return `${IMGSVC_BASE}/1.0/image/${IMGSVC_KEY_ID}.${signature}${text}`;
}
