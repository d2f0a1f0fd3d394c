import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/base/clock.ts";
import { eventIdOf } from "../../src/events/event.ts";
import { openStore } from "../../src/host/open-store.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { median, say } from "../work.ts";
import { type EventPart, rounded, worst } from "./part.ts";
import { judge, Receiver, repeatsByToken, type Verdict } from "./receiver.ts";

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
export function startFanout(url: string, receiver: string, ttlMs: number, window = 1_000): Promise<ChildProcess> {
  const child = fork(script, [url, receiver, String(ttlMs), String(window)], {
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

export interface KillVerdict extends Verdict {
  readonly events: number;
  /** Records a second that were really written. */
  readonly perSecond: number;
  /** Repeats after each kill. */
  readonly repeatsPerKill: readonly number[];
}

/** Kills the fan-out again and again under load, while another stands by. The receiver's ledger is the judge. */
export async function killFanouts({ url, ttlMs, kills, rate }: KillOptions): Promise<KillVerdict> {
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
    const from = systemClock.mono();
    const load = writeLoad(store, rate, stop.signal);
    for (let k = 0; k < kills; k++) {
      const seen = receiver.ledger.length;
      const [next] = await Promise.all([begin(), receiver.until((ledger) => ledger.length > seen + rate / 5)]);
      holder.kill("SIGKILL");
      running.delete(holder);
      const { length } = receiver.ledger;
      await receiver.until((ledger) => ledger.length > length + 40); // which may include what was in flight
      holder = next;
      if (k % 10 === 9) say(`${url.split(":")[0]}: ${k + 1} fan-outs killed, ${receiver.ledger.length} events`);
    }
    stop.abort();
    await load;
    const seconds = (systemClock.mono() - from) / 1_000;
    const ids = await feedIds(store);
    // The records of the last takeover are written before its events are sent.
    await receiver.until(() => ids.every((id) => receiver.received.has(id)));
    const perSecond = Math.round(ids.length / seconds);
    const repeatsPerKill = repeatsByToken(receiver.ledger);
    return { ...judge(ids, receiver.ledger), events: ids.length, perSecond, repeatsPerKill };
  } finally {
    stop.abort();
    for (const child of running) child.kill("SIGKILL");
    receiver.close();
    await store.close();
  }
}

export interface FanoutKillSizes {
  readonly kills: number;
  readonly rate: number;
}

/**
 * kill -9 of the fan-out under load, judged by the receiver's ledger, on each store.
 *
 *   lost, outOfOrder    records that never arrived; first deliveries behind a later one of the same journal
 *   repeats             of all kills together
 *   repeatsMax          after one kill, at most the window of 1 000
 *   repeatsMedianMs     the median, in milliseconds of the traffic
 */
export const fanoutKills: EventPart<FanoutKillSizes> = {
  usual: { kills: 50, rate: 1_000 },
  small: { kills: 1, rate: 150 },
  figures: ["lost", "outOfOrder", "repeats", "repeatsMax", "repeatsMedianMs", "fanoutKills", "killRate"],
  async measure(site, sizes) {
    const verdicts: KillVerdict[] = [];
    for (const kind of site.stores) {
      const url = await site.store(kind);
      // A lease must be longer than any transaction may take.
      const [address, ttlMs] = kind === "sqlite" ? [url, 800] : [`${url}?transaction_bound_ms=1000`, 2_000];
      const verdict = await killFanouts({ url: address, ttlMs, ...sizes });
      verdicts.push(verdict);
      say(`${kind}, kill -9 × ${sizes.kills}: ${JSON.stringify(verdict)}`);
    }
    const sum = (key: "lost" | "outOfOrder" | "repeats"): number => verdicts.reduce((all, one) => all + one[key], 0);
    const medians = verdicts.map((one) => (median(one.repeatsPerKill) * 1_000) / one.perSecond);
    return {
      ...{ lost: sum("lost"), outOfOrder: sum("outOfOrder"), repeats: sum("repeats") },
      repeatsMax: worst(...verdicts.flatMap(({ repeatsPerKill }) => repeatsPerKill)),
      repeatsMedianMs: worst(...medians.map((ms) => rounded(ms, 1))),
      fanoutKills: sizes.kills * verdicts.length,
      killRate: Math.min(...verdicts.map(({ perSecond }) => perSecond)),
    };
  },
};
