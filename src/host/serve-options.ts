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
  /** A store, or the URL of one; what is opened here is closed here. */
  readonly store: Store | string;
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Default 7878; 0: any that is free. */
  readonly port?: number;
  /** none (default): only a loopback address may be bound, and whoever reaches it is admin. */
  readonly credentials?: "required" | "none";
  /** `id.secret` of an admin of `tenant`, to make the first tokens with. */
  readonly bootstrapToken?: string;
  /** accepted: tokens may travel in clear to an address that others reach, because something in front of it speaks TLS. */
  readonly plain?: "refused" | "accepted";
  /** Where browsers find this server, if a proxy in front of it has another name: `https://tape.example`. */
  readonly origin?: string;
  /** PEM texts. */
  readonly tls?: ListenOptions["tls"];
  /** The tenant that runs the server. Default "default". */
  readonly tenant?: string;
  readonly limits?: Partial<ServerLimits>;
  /** How long tokens hold that are made through this server. */
  readonly lifetimes?: TokenLifetimes;
  readonly timeouts?: Partial<Timeouts>;
  /** `"10.0.0.0/8, ::1"`: proxies whose Forwarded or X-Forwarded-For header is believed. */
  readonly trustedProxies?: string;
  /** Schemas of its workflows and gates refuse bad inputs and signals on receipt. Effects whose acts are settled here at once when a person resolves them as happened; others wait for a reconciler that has them. */
  readonly runner?: Runner;
  readonly version?: string;
  /** For `durable-tape dev`: its page has buttons that a server in earnest must not show. */
  readonly dev?: boolean;
  readonly clock?: Clock;
  readonly random?: Random;
  /** As in `Tape.open`. */
  readonly log?: LogOption;
}

const keys: readonly (keyof ServeOptions)[] = [
  ...(["store", "host", "port", "credentials", "bootstrapToken", "plain", "origin", "tls", "tenant"] as const),
  ...(["limits", "lifetimes", "timeouts", "trustedProxies", "runner", "version", "dev"] as const),
  ...(["clock", "random", "log"] as const),
];

/** Checked before anything is opened: a mistyped `credentials` must not leave a door open, nor a limit of NaN none. */
export function checkServeOptions(options: ServeOptions): void {
  assertKnownKeys("serve", options, keys, { token: "the server's own first token is bootstrapToken" });
  const { credentials = "none", plain = "refused", port, host, tenant, tls, runner } = options;
  assertOneOf("serve", "credentials", credentials, ["required", "none"]);
  assertOneOf("serve", "plain", plain, ["refused", "accepted"]);
  numberOf("serve", "port", port, 0, { min: 0, max: 65_535 });
  if (host !== undefined) assertName("serve: host", host);
  if (tenant !== undefined) assertName("serve: tenant", tenant);
  textOr("serve", "origin", options.origin);
  textOr("serve", "trustedProxies", options.trustedProxies);
  if (runner !== undefined) assertRunner("serve", runner);
  // What reads a variable that is not set would otherwise serve without TLS, or without the first token.
  for (const field of ["tls", "bootstrapToken"] as const) {
    if (Object.hasOwn(options, field) && options[field] === undefined) throw unset(field);
  }
  if (tls !== undefined) assertKnownKeys("serve: tls", tls, ["cert", "key", "clientCa"]);
  numbers("limits", options.limits, Object.keys(defaultServerLimits));
  numbers("timeouts", options.timeouts, Object.keys(defaultTimeouts));
  numbers("lifetimes", options.lifetimes, ["defaultMs", "maxMs"]);
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
    `serve: ${field} is given and undefined: is a variable not set? Leave it out instead`,
    {
      field,
    },
  );
