import { hostname } from "node:os";
import type { Random } from "../base/random.ts";

/** The identity of this process. Two processes may share a label, never an owner. */
export interface Identity {
  /** A random incarnation id, new with every start: a restarted process is a different owner. */
  readonly owner: string;
  /** A readable name: an explicit setting (TAPE_REPLICA_ID, else OPENSHELL_REPLICA_ID), else HOSTNAME, else the machine's. */
  readonly label: string;
}

/**
 * Creates this process's identity from its environment.
 *
 * @example
 * const { owner, label } = identify(process.env, systemRandom);
 */
export function identify(env: Readonly<Record<string, string | undefined>>, random: Random): Identity {
  const label = env.TAPE_REPLICA_ID || env.OPENSHELL_REPLICA_ID || env.HOSTNAME || hostname() || "unnamed";
  return { owner: `${label}/${random.bits63().toString(36)}`, label };
}
