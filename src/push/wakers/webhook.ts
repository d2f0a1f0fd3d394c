import { createHmac } from "node:crypto";
import { type Clock, systemClock } from "../../base/clock.ts";
import type { Duration } from "../../base/duration.ts";
import { type Log, logOf } from "../../base/log.ts";
import { type Random, systemRandom } from "../../base/random.ts";
import { errorFields } from "../../base/reason.ts";
import { TapeError } from "../../model/errors.ts";
import type { Waker } from "../../reactor/remote.ts";
import { assertKnownKeys, durationOf, numberOf } from "../../sdk/validate.ts";
import { assertAddress, toReactor } from "./address.ts";

/** Where wake-ups go, and how they are signed. */
export interface WebhookWakerOptions {
  /** Address of the handler; `{reactor}` in it is replaced by the reactor's name. */
  readonly url: string;
  /** `whsec_…`, as the handler's `webhookSignature` has them; the first two sign. */
  readonly secrets: readonly string[];
  /** Requests under way for one reactor: a handler answers after its work. Default 10. */
  readonly concurrency?: number;
  /** How long a request may take: longer than `within` of the handler. Default 65 s. */
  readonly timeout?: Duration;
  readonly log?: Log;
  readonly clock?: Clock;
  readonly random?: Random;
}

const known = ["url", "secrets", "concurrency", "timeout", "log", "clock", "random"];

/**
 * Wakes handlers by signed POST requests (Standard Webhooks). It does not wait for the handler's work, and a failed
 * request is only logged: the work stays due, and the announcer repeats the wake-up.
 *
 * @example
 * const waker = webhookWaker({ url: "https://push.example/{reactor}", secrets: [process.env.HOOK_SECRET!] });
 */
export function webhookWaker(options: WebhookWakerOptions): Waker {
  assertKnownKeys("webhookWaker", options, known);
  const { url, log = logOf("warn"), clock = systemClock, random = systemRandom } = options;
  const keys = keysOf(options.secrets);
  assertAddress("webhookWaker", url);
  const concurrency = numberOf("webhookWaker", "concurrency", options.concurrency, 10, { min: 1, max: 1_000 });
  const timeoutMs = durationOf("webhookWaker", "timeout", options.timeout, 65_000);
  const underWay = new Map<string, number>();
  const open = new Set<Promise<void>>();
  const closing = new AbortController();

  const send = async (reactor: string): Promise<void> => {
    const body = JSON.stringify({ reactor });
    const headers = { "content-type": "application/json", ...signed(keys, body, random, clock) };
    const target = toReactor(url, reactor);
    const late = new AbortController();
    const cancel = clock.after(timeoutMs, () => late.abort(new Error(`no answer within ${timeoutMs} ms`)));
    try {
      const signal = AbortSignal.any([closing.signal, late.signal]);
      const response = await fetch(target, { method: "POST", body, headers, signal, redirect: "error" });
      await response.body?.cancel();
      if (!response.ok) log("warn", "waker.refused", { reactor, status: response.status });
    } catch (error) {
      if (!closing.signal.aborted) log("warn", "waker.failed", { reactor, ...errorFields(error) });
    } finally {
      cancel();
    }
  };

  return {
    label: "webhook",
    async wake(reactor, requests) {
      const free = concurrency - (underWay.get(reactor) ?? 0);
      for (let k = 0; k < Math.min(requests, free); k++) {
        underWay.set(reactor, (underWay.get(reactor) ?? 0) + 1);
        const sent = send(reactor).finally(() => {
          underWay.set(reactor, underWay.get(reactor)! - 1);
          open.delete(sent);
        });
        open.add(sent);
      }
    },
    async close() {
      closing.abort();
      await Promise.all(open);
    },
  };
}

/** The headers of Standard Webhooks, with a signature by each key. */
function signed(keys: readonly Buffer[], body: string, random: Random, clock: Clock): Record<string, string> {
  const id = `wake_${random.uuid(clock.wall())}`;
  const timestamp = String(Math.floor(clock.wall() / 1_000));
  const signature = (key: Buffer): string =>
    `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")}`;
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": keys.map(signature).join(" "),
  };
}

function keysOf(secrets: unknown): Buffer[] {
  const given = Array.isArray(secrets) ? secrets.slice(0, 2) : [];
  const keys = given.map((secret) =>
    Buffer.from(/^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(String(secret))?.[1] ?? "", "base64"),
  );
  if (keys.length > 0 && keys.every((key) => key.length >= 24 && key.length <= 64)) return keys;
  const message = "webhookWaker: secrets must be whsec_ and 24 to 64 bytes in base64";
  throw new TapeError("TAPE_BAD_INPUT", message, { field: "secrets" });
}
