import type { JWTVerifyGetKey } from "jose";
import { TapeError } from "../../model/errors.ts";
import { loadPeer } from "../../model/peer.ts";
import { assertKnownKeys } from "../../sdk/validate.ts";
import { forbidden, passed, unauthenticated, type Verdict, type Verify } from "./verify.ts";

/** Which tokens of Google are accepted. */
export interface GoogleOidcOptions {
  /** `--push-auth-token-audience` of the subscription, or the audience of the task: usually the handler's address. */
  readonly audience: string;
  /** The service account that signs: one, or several. Without it any account of Google could call. */
  readonly email: string | readonly string[];
  /** Where the public keys are. Default Google's. Tests have their own. */
  readonly keys?: string;
}

const googleKeys = "https://www.googleapis.com/oauth2/v3/certs";
const keyFaults: ReadonlySet<string> = new Set(["ERR_JOSE_GENERIC", "ERR_JWKS_TIMEOUT", "ERR_JWKS_INVALID"]);
const issuers = ["https://accounts.google.com", "accounts.google.com"];

/**
 * Accepts requests of Pub/Sub, Cloud Tasks and Cloud Scheduler with an OIDC token of one service account. Needs the
 * package `jose`.
 *
 * @example
 * const verify = googleOidc({ audience: "https://push.example/recovery", email: "push@my-project.iam.gserviceaccount.com" });
 */
export function googleOidc(options: GoogleOidcOptions): Verify {
  assertKnownKeys("googleOidc", options, ["audience", "email", "keys"]);
  const { audience, email, keys = googleKeys } = options;
  const emails = typeof email === "string" ? [email] : email;
  if (typeof audience !== "string" || audience === "") throw missing("audience");
  if (!Array.isArray(emails) || emails.length === 0 || emails.some((one) => !/^\S+@\S+$/.test(String(one)))) {
    throw missing("email");
  }
  let loaded: Promise<(token: string) => Promise<Verdict>> | undefined;
  return {
    label: "googleOidc",
    async check(headers) {
      const [, token] = /^Bearer ([\w-]+\.[\w-]+\.[\w-]+)$/i.exec(headers.get("authorization") ?? "") ?? [];
      if (token === undefined) return unauthenticated("no bearer token");
      loaded ??= verifier(keys, audience, emails);
      try {
        return await (await loaded)(token);
      } catch (error) {
        loaded = undefined; // the package may be installed meanwhile, and a process must not remember a failed load
        throw error;
      }
    },
  };
}

const missing = (field: string): TapeError =>
  new TapeError("TAPE_BAD_INPUT", `googleOidc: ${field} is required`, { field });

async function verifier(
  keys: string,
  audience: string,
  emails: readonly string[],
): Promise<(token: string) => Promise<Verdict>> {
  const jose = await loadPeer<typeof import("jose")>("jose", "googleOidc");
  const getKey: JWTVerifyGetKey = jose.createRemoteJWKSet(new URL(keys));
  return async (token) => {
    try {
      const { payload } = await jose.jwtVerify(token, getKey, {
        ...{ audience, issuer: issuers, algorithms: ["RS256"], requiredClaims: ["exp", "email", "email_verified"] },
        clockTolerance: 30,
      });
      if (payload.email_verified !== true) return forbidden("the token's email is not verified");
      return emails.includes(String(payload.email)) ? passed : forbidden("the token is of another account");
    } catch (error) {
      // Keys that cannot be fetched are not the caller's fault: the request may be repeated.
      if (!(error instanceof jose.errors.JOSEError) || keyFaults.has(error.code)) throw error;
      return unauthenticated(`${error.code}: ${error.message}`);
    }
  };
}
