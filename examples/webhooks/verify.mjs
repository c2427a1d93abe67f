// Verify notifications in Node, with its own modules only.

import { createHmac, timingSafeEqual } from "node:crypto";

/**
 * Return true if the notification is signed with the secret and at most five minutes old.
 *
 * headers: the request's headers, as node:http gives them
 * body: the request's body as a Buffer, before it is parsed
 * secret: "whsec_...", as `imgsvc accounts webhook-secret` shows it
 */
export function isGenuine(headers, body, secret) {
  const { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures = "" } = headers;
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= 300)) return false;
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const digest = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64");
  const expected = Buffer.from(`v1,${digest}`);
  return signatures.split(" ").some((signature) => {
    const given = Buffer.from(signature);
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}
