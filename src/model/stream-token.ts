import { createHmac } from "node:crypto";
import { isSameMac } from "./fence-mac.ts";

/**
 * The token of a stream: `stream.journal.expires.name.mac`. It reads one stream of one run until it expires, and nothing
 * else. It follows from the store's secret, so no table holds it.
 */
export interface StreamRef {
  readonly journal: number;
  readonly stream: string;
  readonly expiresAt: number;
}

export function streamToken(storeSecret: string, { journal, stream, expiresAt }: StreamRef): string {
  const text = `${journal}.${expiresAt}.${Buffer.from(stream).toString("base64url")}`;
  const mac = createHmac("sha256", storeSecret).update(`tape-stream/1\n${text}`).digest("base64url");
  return `stream.${text}.${mac}`;
}

/** A name has at most 512 characters: 2048 bytes. SHA-256 in base64url has 43 characters. */
const form = /^stream\.([1-9]\d{0,14})\.([1-9]\d{0,14})\.([\w-]{1,2736})\.[\w-]{43}$/;

/** What a token names; whether the store has issued it, {@link isStreamToken} says. */
export function streamRefOf(token: string): StreamRef | undefined {
  const [, journal, expiresAt, name] = form.exec(token) ?? [];
  if (journal === undefined || expiresAt === undefined || name === undefined) return undefined;
  return {
    journal: Number(journal),
    stream: Buffer.from(name, "base64url").toString(),
    expiresAt: Number(expiresAt),
  };
}

/** The comparison takes constant time. */
export const isStreamToken = (storeSecret: string, token: string, ref: StreamRef): boolean =>
  isSameMac(token, streamToken(storeSecret, ref));
