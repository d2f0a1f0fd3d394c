import { createRunner, isTapeError, type Lease, Tape } from "../../src/exports/index.ts";

export interface Result {
  /** The final value of the resource. The new owner wrote 200. */
  readonly total: number;
  /** The error code with which the old owner's late write was rejected. */
  readonly rejected: string | undefined;
}

/** A program that only holds leases. */
export const openApp = (store: string): Promise<Tape> =>
  Tape.open({ store, runner: createRunner({ workflows: [] }), work: false });

/**
 * A stalled worker is replaced and then resumes. Two replicas share the lease "day-end". The first has computed a total
 * of 100 and stalls; the second takes over and writes 200. Then the first resumes: it cannot notice that it is no longer
 * the owner, and writes its total.
 */
export async function race(
  store: string,
  write: (lease: Lease, total: number) => Promise<void>,
  read: () => Promise<number>,
): Promise<Result> {
  await using first = await openApp(store);
  await using second = await openApp(store);
  const old = await first.leases.acquire("day-end");
  const current = await second.leases.takeover("day-end", { reason: "no progress for an hour" });
  await write(current, 200);
  old.assert(); // passes by its own clocks: only the resource can know
  let rejected: string | undefined;
  try {
    await write(old, 100);
  } catch (error) {
    if (!isTapeError(error)) throw error;
    rejected = error.code;
  }
  return { total: await read(), rejected };
}
