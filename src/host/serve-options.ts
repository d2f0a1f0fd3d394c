import { TapeError } from "../model/errors.ts";
import { choice, knownKeys, named, numberOf, shown, textOr } from "../sdk/check.ts";
import { defaultServerLimits } from "../server/limits.ts";
import { defaultTimeouts } from "../server/listen.ts";
import { assertRunner } from "./options.ts";
import type { ServeOptions } from "./serve.ts";

const keys: readonly (keyof ServeOptions)[] = [
  ...(["store", "host", "port", "credentials", "bootstrapToken", "plain", "origin", "tls", "tenant"] as const),
  ...(["limits", "lifetimes", "timeouts", "trustedProxies", "runner", "version", "dev"] as const),
  ...(["clock", "random", "log"] as const),
];

/** Checked before anything is opened: a mistyped `credentials` must not leave a door open, nor a limit of NaN none. */
export function checkServeOptions(options: ServeOptions): void {
  knownKeys("serve", options, keys, { token: "the server's own first token is bootstrapToken" });
  const { credentials = "none", plain = "refused", port, host, tenant, tls, runner } = options;
  choice("serve", "credentials", credentials, ["required", "none"]);
  choice("serve", "plain", plain, ["refused", "accepted"]);
  numberOf("serve", "port", port, 0, { min: 0, max: 65_535 });
  if (host !== undefined) named("serve: host", host);
  if (tenant !== undefined) named("serve: tenant", tenant);
  textOr("serve", "origin", options.origin);
  textOr("serve", "trustedProxies", options.trustedProxies);
  if (runner !== undefined) assertRunner("serve", runner);
  // What reads a variable that is not set would otherwise serve without TLS, or without the first token.
  for (const field of ["tls", "bootstrapToken"] as const) {
    if (Object.hasOwn(options, field) && options[field] === undefined) throw unset(field);
  }
  if (tls !== undefined) knownKeys("serve: tls", tls, ["cert", "key", "clientCa"]);
  numbers("limits", options.limits, Object.keys(defaultServerLimits));
  numbers("timeouts", options.timeouts, Object.keys(defaultTimeouts));
  numbers("lifetimes", options.lifetimes, ["defaultMs", "maxMs"]);
}

function numbers(field: string, given: object | undefined, known: readonly string[]): void {
  if (given === undefined) return;
  knownKeys(`serve: ${field}`, given, known);
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
