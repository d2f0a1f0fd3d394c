import { createHmac, createPrivateKey, type KeyObject, sign } from "node:crypto";
import { TapeError } from "../../model/errors.ts";
import { assertKnownKeys } from "../../sdk/validate.ts";
import type { TapeEvent } from "../event.ts";
import type { Delivery, Sink } from "../sink.ts";
import { type HttpSinkOptions, HttpTarget, httpSinkKeys } from "./http.ts";

/** Options of a {@link webhookSink}. */
export interface WebhookOptions extends HttpSinkOptions {
  /**
   * `whsec_…` (HMAC-SHA-256, at least 24 bytes) or `whsk_…` (an ed25519 key of 32 or 64 bytes), in Base64. While one is
   * replaced, both: each signs every request.
   */
  readonly secrets: readonly string[];
  /** Bytes of one event. Default 256 KiB; a larger one is a dead letter. */
  readonly maxBytes?: number;
}

const defaultBytes = 256 * 1024;
const maxSecrets = 4;
const minSecretBytes = 24;

/**
 * A sink that posts each event to a URL, signed by the rules of Standard Webhooks: `webhook-id` is the event's id,
 * `webhook-timestamp` the time of the attempt.
 *
 * @example
 * const sink = webhookSink({ url: "https://billing.example/hooks", secrets: [process.env.HOOK_SECRET!] });
 */
export function webhookSink(options: WebhookOptions): Sink {
  const subject = "a webhook sink";
  assertKnownKeys(subject, options, [...httpSinkKeys, "secrets", "maxBytes"]);
  const signers = signersOf(subject, options.secrets);
  const target = new HttpTarget(subject, options);
  const { maxBytes = defaultBytes } = options;
  return {
    label: `webhook ${target.label}`,
    limits: { events: 1, bytes: maxBytes },
    async send(events, { signal }): Promise<Delivery[]> {
      const [event] = events as [TapeEvent];
      const body = JSON.stringify(event);
      if (Buffer.byteLength(body) > maxBytes) return [{ never: `larger than ${maxBytes} bytes`, code: "too_large" }];
      const timestamp = String(Math.floor(target.clock.wall() / 1_000));
      const signed = signedText(event.id, timestamp, body);
      const headers = {
        "content-type": "application/json",
        "webhook-id": event.id,
        "webhook-timestamp": timestamp,
        "webhook-signature": signers.map((signer) => signer(signed)).join(" "),
      };
      return [await target.post(body, headers, signal)];
    },
    close: () => Promise.resolve(target.close()),
  };
}

type Signer = (text: string) => string;

const signedText = (id: string, timestamp: string, body: string): string => `${id}.${timestamp}.${body}`;

/** The signature of one secret, for tests of receivers. `timestamp`: seconds since 1970. */
export const signWebhook = (secret: string, id: string, timestamp: string, body: string): string =>
  signerOf("a webhook", secret)(signedText(id, timestamp, body));

function signersOf(subject: string, secrets: readonly string[]): readonly Signer[] {
  if (!Array.isArray(secrets) || secrets.length === 0 || secrets.length > maxSecrets) {
    throw bad(subject, `secrets must be a list of 1 to ${maxSecrets} secrets`);
  }
  return secrets.map((secret: unknown) => signerOf(subject, secret));
}

function signerOf(subject: string, secret: unknown): Signer {
  const [, kind, text] = typeof secret === "string" ? (/^(whsec|whsk)_([A-Za-z0-9+/]+=*)$/.exec(secret) ?? []) : [];
  const bytes = Buffer.from(text ?? "", "base64");
  if (kind === "whsec" && bytes.length >= minSecretBytes) {
    return (signed) => `v1,${createHmac("sha256", bytes).update(signed).digest("base64")}`;
  }
  if (kind === "whsk" && (bytes.length === 32 || bytes.length === 64)) {
    const key = ed25519(bytes.subarray(0, 32));
    return (signed) => `v1a,${sign(null, Buffer.from(signed), key).toString("base64")}`;
  }
  // Without the secret: this text reaches logs.
  throw bad(subject, `a secret must be whsec_ or whsk_ and Base64 of at least ${minSecretBytes} bytes`);
}

/** The fixed start of an ed25519 key in PKCS #8. */
const pkcs8 = Buffer.from("302e020100300506032b657004220420", "hex");

const ed25519 = (seed: Buffer): KeyObject =>
  createPrivateKey({ key: Buffer.concat([pkcs8, seed]), format: "der", type: "pkcs8" });

const bad = (subject: string, message: string): TapeError =>
  new TapeError("TAPE_BAD_INPUT", `${subject}: ${message}`, { field: "secrets" });
