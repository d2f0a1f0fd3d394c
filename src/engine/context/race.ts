import { TapeError } from "../../model/errors.ts";
import type { RecordData } from "../../model/records.ts";
import { ignoreRejection } from "../replay/stored-value.ts";
import type { Operations } from "./operations.ts";

/** Promise.race whose winner is recorded: a replay returns the same one, whichever branches have settled by then. */
export function race<T>(ops: Operations, branches: readonly Promise<T>[]): Promise<T> {
  const settled = (branch: Promise<T>, k: number): Promise<number> =>
    branch.then(
      () => k,
      () => k,
    );
  return firstOf(ops, "race", branches, () => Promise.race(branches.map(settled)));
}

/** Promise.any whose winner is recorded. If all fail, the number after the last branch is recorded instead. */
export function any<T>(ops: Operations, branches: readonly Promise<T>[]): Promise<T> {
  const fulfilled = (branch: Promise<T>, k: number): Promise<number> => branch.then(() => k);
  return firstOf(ops, "any", branches, () => Promise.any(branches.map(fulfilled)).catch(() => branches.length));
}

function firstOf<T>(
  ops: Operations,
  name: string,
  branches: readonly Promise<T>[],
  pick: () => Promise<number>,
): Promise<T> {
  if (branches.length === 0) {
    return Promise.reject(new TapeError("TAPE_BAD_INPUT", `${name} of no branches would never settle`));
  }
  ops.raced = true;
  for (const branch of branches) branch.catch(() => {}); // a loser's failure does not fail the race
  const won = (winner: number): Promise<T> => branches[winner] ?? ignoreRejection(allFailed(branches));
  return ops.operation<T>({
    kinds: ["race.won"],
    name,
    result: ({ record }) => won((record.data as RecordData<"race.won">).winner),
    begin: (handle) => {
      void pick().then((winner) => {
        handle.end({ kind: "race.won", data: { pos: handle.pos, winner } }, won(winner));
      });
    },
  });
}

async function allFailed<T>(branches: readonly Promise<T>[]): Promise<T> {
  const ends = await Promise.allSettled(branches);
  const errors = ends.flatMap((end) => (end.status === "rejected" ? [end.reason as unknown] : []));
  throw new AggregateError(errors, "all branches failed");
}
