import { createHash, timingSafeEqual } from "node:crypto";
import { TapeError } from "../../model/errors.ts";
import { assertKnownKeys } from "../../sdk/validate.ts";
import { passed, unauthenticated, type Verify } from "./verify.ts";

/** A secret that sender and receiver share. */
export interface SharedSecretOptions {
  /** The accepted secrets, at least 16 characters each: two while one replaces the other. */
  readonly secrets: readonly string[];
  /** The header that carries it. Default `x-tape-secret`; in `authorization` it follows `Bearer `. */
  readonly header?: string;
}

const minLength = 16;

/**
 * Accepts requests that carry a shared secret in a header.
 *
 * @example
 * const handler = pushHandler(app, { reactors: ["recovery"], verify: sharedSecret({ secrets: [process.env.PUSH_SECRET!] }) });
 */
export function sharedSecret(options: SharedSecretOptions): Verify {
  assertKnownKeys("sharedSecret", options, ["secrets", "header"]);
  const { secrets, header = "x-tape-secret" } = options;
  if (!Array.isArray(secrets) || secrets.length === 0 || secrets.length > 10) {
    throw new TapeError("TAPE_BAD_INPUT", "sharedSecret: secrets must have 1 to 10 entries", { field: "secrets" });
  }
  if (secrets.some((secret) => typeof secret !== "string" || secret.length < minLength)) {
    const message = `sharedSecret: a secret must have at least ${minLength} characters`;
    throw new TapeError("TAPE_BAD_INPUT", message, { field: "secrets" });
  }
  const expected = secrets.map(digest);
  return {
    label: "sharedSecret",
    async check(headers) {
      const found = headers.get(header);
      if (found === null) return unauthenticated(`no ${header} header`);
      const secret = digest(header.toLowerCase() === "authorization" ? found.replace(/^Bearer /i, "") : found);
      // Every secret is compared, so that the time does not show which one is near.
      const matches = expected.filter((one) => timingSafeEqual(one, secret)).length;
      return matches > 0 ? passed : unauthenticated(`wrong secret in ${header}`);
    },
  };
}

/** Digests have one length, which a comparison in constant time needs. */
const digest = (text: string): Buffer => createHash("sha256").update(text).digest();

/**
 * Accepts every request, and says in the code why that is right: the platform checks IAM, or the port is not reachable.
 *
 * @example
 * const handler = pushHandler(app, { reactors: ["recovery"], verify: unverified("Cloud Run checks IAM first") });
 */
export function unverified(reason: string): Verify {
  if (typeof reason !== "string" || reason.trim() === "") {
    throw new TapeError("TAPE_UNVERIFIED", "unverified: say why every request may pass", { field: "reason" });
  }
  return { label: `unverified (${reason})`, check: async () => passed };
}
