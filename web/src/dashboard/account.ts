/** Calls about an account, and the types of their answers. */

import { type Answer, get, post } from "../shared/service";

export type Account = Answer<"/1.0/account">;
export type PastRequest = Answer<"/1.0/requests">["requests"][number];
export type Webhook = Answer<"/1.0/webhooks">["webhooks"][number];
export type Key = Answer<"/1.0/keys">["keys"][number];

export const STATUSES = ["created", "scheduled", "dispatched", "delivered", "failed"] as const satisfies Webhook["status"][];

export const account = (): Promise<Account> => get("/1.0/account");

export const requests = async (): Promise<PastRequest[]> => (await get("/1.0/requests")).requests;

export const webhooks = async (status: string): Promise<Webhook[]> =>
  (await get("/1.0/webhooks", status && `?status=${status}`)).webhooks;

export const retry = (id: string): Promise<unknown> => post("/1.0/webhooks/{id}/retry", { at: `1.0/webhooks/${id}/retry` });

export const keys = async (): Promise<Key[]> => (await get("/1.0/keys")).keys;
