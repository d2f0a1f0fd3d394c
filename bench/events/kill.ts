import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/base/clock.ts";
import { eventIdOf } from "../../src/events/event.ts";
import { openStore } from "../../src/host/open-store.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { judge, Receiver, type Verdict } from "./receiver.ts";

const tenant = "default";
const script = fileURLToPath(new URL("./fanout-process.ts", import.meta.url));

export interface KillOptions {
  readonly url: string;
  readonly ttlMs: number;
  readonly kills: number;
  /** Records per second. */
  readonly rate: number;
}

/** A fan-out process that is ready. */
export function startFanout(url: string, receiver: string, ttlMs: number): Promise<ChildProcess> {
  const child = fork(script, [url, receiver, String(ttlMs)], {
    execArgv: [],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  return new Promise((resolve, reject) => {
    child.once("message", () => resolve(child));
    child.once("exit", (code) => reject(new Error(`the fan-out ended with ${code}`)));
  });
}

/** The ids of all events of the tenant's feed. */
export async function feedIds(store: Store): Promise<string[]> {
  const ids: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await store.read.feed(cursor, undefined, tenant);
    ids.push(...page.records.map(eventIdOf));
    cursor = page.cursor;
    if (page.records.length === 0 && page.more !== true) return ids;
  }
}

/** Runs of three records each, at this rate, until the signal aborts. */
export async function writeLoad(store: Store, rate: number, signal: AbortSignal): Promise<void> {
  const perTick = Math.max(1, Math.round(rate / 3 / 50));
  for (let n = 0; !signal.aborted; await systemClock.sleep(20, signal)) {
    const holder = { owner: "load", label: "load", reactor: "agent", ttlMs: 60_000, nonce: BigInt(++n) };
    const specs = Array.from({ length: perTick }, (_, k) => ({ id: `run-${n}-${k}`, workflow: "w", input: k }));
    const created = await store.intake.createRuns(tenant, specs, holder);
    await store.fenced.appendAll(
      created.flatMap((one) => {
        if (!one.ok || one.term === undefined) return [];
        const step = { kind: "step.done" as const, data: { pos: 0, name: "s", value: 1 } };
        const end = { kind: "run.ended" as const, data: { status: "COMPLETED" as const, notesTaken: 0, outcome: 1 } };
        return [[one.term.fence, { after: 1, records: [step, end] }] as const];
      }),
    );
  }
}

/**
 * Kills the fan-out again and again under load, while another stands by. The receiver's ledger is the judge. `repeats`
 * counts those of all kills together.
 */
export async function killFanouts({
  url,
  ttlMs,
  kills,
  rate,
}: KillOptions): Promise<Verdict & { readonly events: number }> {
  const receiver = new Receiver();
  const address = await receiver.listen();
  const store = await openStore(url);
  const stop = new AbortController();
  const running = new Set<ChildProcess>();
  const begin = async (): Promise<ChildProcess> => {
    const child = await startFanout(url, address, ttlMs);
    running.add(child);
    return child;
  };
  try {
    let holder = await begin();
    const load = writeLoad(store, rate, stop.signal);
    for (let k = 0; k < kills; k++) {
      const seen = receiver.ledger.length;
      const [next] = await Promise.all([begin(), receiver.until((ledger) => ledger.length > seen + rate / 5)]);
      holder.kill("SIGKILL");
      running.delete(holder);
      const { length } = receiver.ledger;
      await receiver.until((ledger) => ledger.length > length + 40); // which may include what was in flight
      holder = next;
    }
    stop.abort();
    await load;
    const ids = await feedIds(store);
    // The records of the last takeover are written before its events are sent.
    const wanted = new Set(ids);
    await receiver.until((ledger) => {
      const received = new Set(ledger.map(({ id }) => id));
      return [...wanted].every((id) => received.has(id));
    });
    return { ...judge(ids, receiver.ledger), events: ids.length };
  } finally {
    stop.abort();
    for (const child of running) child.kill("SIGKILL");
    receiver.close();
    await store.close();
  }
}
