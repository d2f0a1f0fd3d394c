import { isTapeError, type TapeError } from "../../../model/errors.ts";
import { Connections } from "../connections.ts";
import { classifyError, unreachable } from "../errors.ts";
import { parsePostgresUrl } from "../url.ts";
import { identityOf, type ShardIdentity } from "./identity.ts";

/** What a database of the list says before anything is opened. */
export type PeekResult =
  | { readonly down: TapeError }
  | { readonly identity: ShardIdentity; readonly roster: readonly RosterRow[] }
  | { readonly blank: true };

export interface RosterRow {
  readonly number: number;
  readonly name: string;
  readonly state: string;
}

/** Reads which shard a database is, and the shards that it knows. Writes nothing. */
export async function peek(url: string): Promise<PeekResult> {
  const connections = new Connections(parsePostgresUrl(url));
  try {
    const identity = await identityOf(connections);
    if (identity === undefined) return { blank: true };
    const { rows } = await connections.ask("shard.roster", {});
    return { identity, roster: rows.map(({ number, name, state }) => ({ number: Number(number), name, state })) };
  } catch (error) {
    if (isTapeError(error, "TAPE_STORE_UNREACHABLE")) return { down: error };
    if (isTapeError(error) || !isOutage(error)) throw error;
    return { down: unreachable(error) };
  } finally {
    await connections.close();
  }
}

/** A refused password or a missing database is a mistake in the list, not an outage. */
function isOutage(error: unknown): boolean {
  return classifyError(error).kind === "connection";
}
