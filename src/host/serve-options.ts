import type { Clock } from "../base/clock.ts";
import type { LogOption } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import { TapeError } from "../model/errors.ts";
import { assertKnownKeys, assertName, assertOneOf, numberOf, shown, textOr } from "../sdk/validate.ts";
import type { Runner } from "../sdk/workflow.ts";
import type { TokenLifetimes } from "../server/handler-types.ts";
import { defaultServerLimits, type ServerLimits } from "../server/limits.ts";
import { defaultTimeouts, type ListenOptions, type Timeouts } from "../server/listen.ts";
import type { Store } from "../store/contract/store.ts";
import { assertRunner } from "./options.ts";

/** What `serve` serves, where it listens, and who may call. */
export interface ServeOptions {
  /** A store or its URL. A store that `serve` opens, it also closes. */
  readonly store: Store | string;
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Default 7878; 0: any free port. */
  readonly port?: number;
  /** none (default): only a loopback address may be bound, and every caller is admin. Default "none". */
  readonly credentials?: "required" | "none";
  /** `id.secret` of an admin of `tenant`, for creating the first tokens. */
  readonly bootstrapToken?: string;
  /**
   * accepted: tokens may travel unencrypted to a reachable address, because a proxy in front of it terminates TLS.
   * Default "refused".
   */
  readonly plain?: "refused" | "accepted";
  /** The address under which browsers reach this server through a proxy: `https://tape.example`. */
  readonly origin?: string;
  /** `"https://app.example"`: origins of pages that may read streams, each with a token for its stream. */
  readonly streamOrigins?: string;
  /**
   * The address of your codec endpoint, see {@link codecHandler}. The dashboard calls it from the browser, to show
   * encrypted payloads; this server never does.
   */
  readonly codecEndpoint?: string;
  /** PEM texts. */
  readonly tls?: ListenOptions["tls"];
  /** The tenant that operates the server. Default "default". */
  readonly tenant?: string;
  /** Bounds of requests, connections and rates. Default: those of docs/server.md. */
  readonly limits?: Partial<ServerLimits>;
  /** Lifetimes of tokens that are created through this server. */
  readonly lifetimes?: TokenLifetimes;
  /** Times of connections and requests, in milliseconds. Default: those of docs/server.md. */
  readonly timeouts?: Partial<Timeouts>;
  /** `"10.0.0.0/8, ::1"`: proxies whose Forwarded or X-Forwarded-For header is trusted. */
  readonly trustedProxies?: string;
  /**
   * The schemas of its workflows and gates reject bad inputs and signals on receipt. Its effects are settled at once
   * when an operator resolves them as confirmed; other effects wait for a reconciler that has their definition.
   */
  readonly runner?: Runner;
  /** The version that health checks show. */
  readonly version?: string;
  /** For `durable-tape dev`: its page has buttons that a production server must not show. Default false. */
  readonly dev?: boolean;
  readonly clock?: Clock;
  readonly random?: Random;
  /** As in `Tape.open`. */
  readonly log?: LogOption;
}

const keys: readonly (keyof ServeOptions)[] = [
  ...(["store", "host", "port", "credentials", "bootstrapToken", "plain", "origin", "tls", "tenant"] as const),
  ...(["limits", "lifetimes", "timeouts", "trustedProxies", "streamOrigins", "codecEndpoint", "runner"] as const),
  ...(["version", "dev", "clock", "random", "log"] as const),
];

/** Runs before anything is opened: a mistyped `credentials` must not disable authentication, nor NaN a limit. */
export function checkServeOptions(options: ServeOptions): void {
  assertKnownKeys("serve", options, keys, { token: "the first token is bootstrapToken" });
  const { credentials = "none", plain = "refused", port, host, tenant, tls, runner } = options;
  assertOneOf("serve", "credentials", credentials, ["required", "none"]);
  assertOneOf("serve", "plain", plain, ["refused", "accepted"]);
  numberOf("serve", "port", port, 0, { min: 0, max: 65_535 });
  if (host !== undefined) assertName("serve: host", host);
  if (tenant !== undefined) assertName("serve: tenant", tenant);
  textOr("serve", "origin", options.origin);
  textOr("serve", "trustedProxies", options.trustedProxies);
  textOr("serve", "streamOrigins", options.streamOrigins);
  checkEndpoint(options.codecEndpoint);
  if (runner !== undefined) assertRunner("serve", runner);
  // A caller that passes an unset variable would otherwise serve without TLS, or without the first token.
  for (const field of ["tls", "bootstrapToken"] as const) {
    if (Object.hasOwn(options, field) && options[field] === undefined) throw unset(field);
  }
  if (tls !== undefined) assertKnownKeys("serve: tls", tls, ["cert", "key", "clientCa"]);
  numbers("limits", options.limits, Object.keys(defaultServerLimits));
  numbers("timeouts", options.timeouts, Object.keys(defaultTimeouts));
  numbers("lifetimes", options.lifetimes, ["defaultMs", "maxMs"]);
}

/** It becomes part of a header: no other directive may hide in it. */
function checkEndpoint(url: unknown): void {
  if (url === undefined || (typeof url === "string" && /^https?:\/\/[^/?#;,\s'"]+[^?#;,\s'"]*$/.test(url))) return;
  const message = `serve: codecEndpoint is an address such as "https://codec.example/tape", not ${shown(url)}`;
  throw new TapeError("TAPE_BAD_INPUT", message, { field: "codecEndpoint" });
}

function numbers(field: string, given: object | undefined, known: readonly string[]): void {
  if (given === undefined) return;
  assertKnownKeys(`serve: ${field}`, given, known);
  for (const [key, value] of Object.entries(given)) {
    if (typeof value === "number" && Number.isFinite(value) && value > 0) continue;
    throw new TapeError("TAPE_BAD_INPUT", `serve: ${field}.${key} is a number above 0, not ${shown(value)}`, { field });
  }
}

const unset = (field: string): TapeError =>
  new TapeError(
    "TAPE_BAD_INPUT",
    `serve: ${field} is given but undefined: is a variable not set? Leave it out instead`,
    {
      field,
    },
  );
