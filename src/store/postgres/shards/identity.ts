import { TapeError } from "../../../model/errors.ts";
import type { Connections } from "../connections.ts";

/** The shard that a database is. */
export interface ShardIdentity {
  /** The same for all shards of a set. */
  readonly set: string;
  readonly number: number;
  readonly name: string;
}

/** Read before anything is written. undefined: the database is no shard, or has no store yet. */
export async function identityOf(connections: Connections): Promise<ShardIdentity | undefined> {
  const table = `"${connections.settings.schema}".shard_identity`;
  const { rows } = await connections.askText("select to_regclass($1) is not null as there", [table]);
  if ((rows[0] as { there: boolean }).there !== true) return undefined;
  const [row] = (await connections.ask("shard.identity", {})).rows;
  return row === undefined ? undefined : { set: row.set_id, number: Number(row.number), name: row.name };
}

/** One shard opened alone would accept tenants that the directory has on others. */
export function aloneRefused({ name }: ShardIdentity): TapeError {
  const message = `this database is shard ${name} of a set: open it with the list of all shards`;
  return new TapeError("TAPE_SHARD_MISMATCH", message, { shard: name });
}
