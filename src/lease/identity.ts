import { hostname } from "node:os";
import type { Random } from "../base/random.ts";

/** Who this process is. Two processes may share a label, never an owner. */
export interface Identity {
  /** A random incarnation, new with every start: a restarted process is somebody else. */
  readonly owner: string;
  /** For people: TAPE_REPLICA_ID, else HOSTNAME, else the machine's name. An explicit setting always wins. */
  readonly label: string;
}

/** The identity of this process: its replica's label and a random part for this incarnation. */
export function identify(env: Readonly<Record<string, string | undefined>>, random: Random): Identity {
  const label = env.TAPE_REPLICA_ID || env.HOSTNAME || hostname() || "unnamed";
  return { owner: `${label}/${random.bits63().toString(36)}`, label };
}
