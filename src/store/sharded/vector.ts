import { TapeError } from "../../model/errors.ts";
import type { Router } from "./router.ts";

/**
 * A place in lists of all shards: one cursor of each, by number. `moves` is the directory's count: a tenant that has
 * moved since has other places, so such a cursor is refused instead of skipping records.
 */
type Places = readonly (string | undefined)[];

const separator = "~";

export function sealVector(places: Places, { shards }: Pick<Router, "shards">, moves: number): string {
  const last = Math.max(...shards.map(({ number }) => number));
  return [moves, ...Array.from({ length: last + 1 }, (_, k) => places[k] ?? "")].join(separator);
}

export function openVector(cursor: string | undefined, { shards }: Pick<Router, "shards">, moves: number): Places {
  if (cursor === undefined) return [];
  const [counted, ...places] = cursor.split(separator);
  const last = Math.max(...shards.map(({ number }) => number));
  // Places of shards that were added since are missing: those begin at their start.
  if (places.length === 0 || places.length > last + 1 || !/^\d{1,15}$/.test(counted!))
    throw new TapeError("TAPE_BAD_INPUT", "the cursor does not belong to this store", { field: "cursor" });
  if (Number(counted) !== moves) {
    const message = "a tenant has moved to another shard since this cursor was made: read the feed from its start";
    throw new TapeError("TAPE_CURSOR_MOVED", message, { field: "cursor" });
  }
  return places.map((place) => (place === "" ? undefined : place));
}
