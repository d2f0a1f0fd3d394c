import { createRunner, isTapeError, type Lease, Tape } from "../../src/exports/index.ts";

export interface Result {
  /** What the resource holds in the end. The new owner wrote 200. */
  readonly total: number;
  /** With which code the old owner's late write was refused. */
  readonly refused: string | undefined;
}

/** A program that only holds leases. */
export const openApp = (store: string): Promise<Tape> =>
  Tape.open({ store, runner: createRunner({ workflows: [] }), work: false });

/**
 * The worker that was presumed dead, replaced, and then wakes up. Two replicas share the lease "day-end". The first has
 * computed a total of 100 and stalls; the second takes over and writes 200. Then the first wakes up: nothing on its side
 * says that it is no longer the owner, and it writes what it had computed.
 */
export async function race(
  store: string,
  write: (lease: Lease, total: number) => Promise<void>,
  read: () => Promise<number>,
): Promise<Result> {
  await using first = await openApp(store);
  await using second = await openApp(store);
  const old = await first.leases.acquire("day-end");
  const current = await second.leases.takeover("day-end", { reason: "it has been silent for an hour" });
  await write(current, 200);
  old.assert(); // its own clocks have no objection: only the resource can know
  let refused: string | undefined;
  try {
    await write(old, 100);
  } catch (error) {
    if (!isTapeError(error)) throw error;
    refused = error.code;
  }
  return { total: await read(), refused };
}
