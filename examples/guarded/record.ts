import { join } from "node:path";
import { isTapeError, outcome, recordedCall, type Tape } from "../../src/exports/index.ts";
import { openApp, type Result } from "./race.ts";

/** An upstream that checks no token: it prints what it receives, and lists what it has printed. */
class Printer {
  readonly printed: number[] = [];
  async print(total: number): Promise<number> {
    this.printed.push(total);
    return total;
  }
}

export interface PrintResult extends Result {
  readonly printed: readonly number[];
}

/**
 * The old owner prints its page and stalls before it can record the result; the new owner takes over. Without a recorded
 * call the new owner prints a second page, and the old owner's late result overwrites its own. With it the new owner
 * observes the printer first, finds the page, and completes; the old owner's completion is rejected.
 */
export async function throughARecord(folder: string, guarded: boolean): Promise<PrintResult> {
  const store = `sqlite:${join(folder, "tape.db")}`;
  await using first = await openApp(store);
  await using second = await openApp(store);
  const printer = new Printer();
  const [stalled, wake] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const job = async (
    app: Tape,
    print: () => Promise<number>,
    lease: Awaited<ReturnType<Tape["leases"]["acquire"]>>,
  ) => {
    const observe = async () => {
      const found = printer.printed[0];
      return found === undefined ? outcome.absent() : outcome.confirmed(found);
    };
    if (guarded) return recordedCall(app, lease, "monday", print, { observe });
    const total = await print();
    await app.store.intake.putValue("default", "monday", total, "unconditional");
    return total;
  };

  const old = await first.leases.acquire("day-end");
  const late = job(
    first,
    async () => {
      await printer.print(100);
      stalled.resolve();
      await wake.promise; // the page is printed, and this worker stalls
      return 100;
    },
    old,
  );
  await stalled.promise;
  const current = await second.leases.takeover("day-end", { reason: "no progress for an hour" });
  const total = await job(second, () => printer.print(200), current);
  wake.resolve();
  const rejected = await late.then(
    () => undefined,
    (error: unknown) => (isTapeError(error) ? error.code : Promise.reject(error)),
  );
  const stored = (await second.store.read.value("default", "monday"))?.value as number | undefined;
  return { total: stored ?? total, rejected, printed: printer.printed };
}
