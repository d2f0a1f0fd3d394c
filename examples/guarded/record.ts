import { join } from "node:path";
import { isTapeError, outcome, recordedCall, type Tape } from "../../src/exports/index.ts";
import { openApp, type Result } from "./race.ts";

/** An upstream that can check nothing: it prints whatever it is sent, and can be asked what it has printed. */
class Printer {
  readonly printed: number[] = [];
  async print(total: number): Promise<number> {
    this.printed.push(total);
    return total;
  }
}

export interface Printed extends Result {
  readonly printed: readonly number[];
}

/**
 * The old owner has sent its page and stalls before it can write that down; the new owner takes over. Without a record in
 * between the new one prints a second page, and the old one's late "done: 100" overwrites its result. With it the new
 * owner looks at the printer first, finds the page, and completes; the old owner's completion is refused.
 */
export async function throughARecord(folder: string, guarded: boolean): Promise<Printed> {
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
      await wake.promise; // the page is out, and the world stops for this worker
      return 100;
    },
    old,
  );
  await stalled.promise;
  const current = await second.leases.takeover("day-end", { reason: "it has been silent for an hour" });
  const total = await job(second, () => printer.print(200), current);
  wake.resolve();
  const refused = await late.then(
    () => undefined,
    (error: unknown) => (isTapeError(error) ? error.code : Promise.reject(error)),
  );
  const kept = (await second.store.read.value("default", "monday"))?.value as number | undefined;
  return { total: kept ?? total, refused, printed: printer.printed };
}
