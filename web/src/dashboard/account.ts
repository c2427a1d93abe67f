/** What the service tells of an account, and the calls that ask for it. */

import { json } from "../service";

export interface Account {
  company: string;
  subscription: { name: string; period: string };
  quota: { total: number; used: number; remaining: number };
}

export interface PastRequest {
  id: string;
  finished_at: string;
  code: number;
  message?: string;
  source?: string;
  format?: string;
  width?: number;
  height?: number;
  bytes?: number;
  milliseconds?: number;
  url?: string;
  expires_at?: string;
}

export const STATUSES = ["created", "scheduled", "dispatched", "delivered", "failed"] as const;
export type Status = (typeof STATUSES)[number];

export interface Webhook {
  id: string;
  status: Status;
  created_at: string;
  updated_at: string;
  code: number;
  attempts: { at: string; code: number; reason: string }[];
  payload: { success: boolean; message?: string } | null;
}

export interface Key {
  id: string;
  name: string;
  hint: string;
  scopes: string[];
  created_at: string;
  last_used_at?: string;
  rotated_at?: string;
  previous_until?: string;
  revoked_at?: string;
  calling: boolean;
}

export const account = (): Promise<Account> => json("1.0/account");

export const requests = async (): Promise<PastRequest[]> =>
  (await json<{ requests: PastRequest[] }>("1.0/requests")).requests;

export const webhooks = async (status: string): Promise<Webhook[]> =>
  (await json<{ webhooks: Webhook[] }>(`1.0/webhooks${status ? `?status=${status}` : ""}`)).webhooks;

export const retry = (id: string): Promise<unknown> => json(`1.0/webhooks/${id}/retry`, { method: "POST" });

export const keys = async (): Promise<Key[]> => (await json<{ keys: Key[] }>("1.0/keys")).keys;
