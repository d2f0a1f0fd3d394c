import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { feedIds } from "../../../bench/events/kill.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { seededRandom } from "../../../src/base/random.ts";
import { Tape } from "../../../src/host/tape.ts";
import { createRunner } from "../../../src/sdk/workflow.ts";
import { allRuns } from "../evidence.ts";
import type { Fault, Injection } from "../fault.ts";
import { effectiveKinds, injectFaults } from "../inject-faults.ts";
import { liveRuns } from "../load.ts";
import type { Place } from "../places.ts";
import { Replica } from "../replicas.ts";
import type { RoundReport } from "../round.ts";
import { persistently } from "../store-calls.ts";
import { type SinkDeployment, sinkFaults } from "./faults.ts";
import { isRestore, judgeSink, lostOf, repeatsOf, type SinkEvidence, sentAndLost, staleEntries } from "./judge.ts";
import { sinkName, window } from "./orders.ts";
import { ReceiverHandle } from "./receiver.ts";

export interface SinkRoundOptions {
  readonly name: string;
  readonly place: Place;
  readonly ttlMs: number;
  readonly ms: number;
  readonly seed: string;
  /** Receives the ledger and the logs. */
  readonly folder: string;
  readonly fanouts?: number;
  readonly writers?: number;
  /** Further faults. */
  readonly more?: (deployment: SinkDeployment) => readonly Fault[];
  /** Whether a fault makes the store lose what it had acknowledged. */
  readonly loss?: boolean;
  /** Selects faults. Default: all. */
  readonly only?: (fault: Fault) => boolean;
  readonly progress?: (line: string) => void;
}

/** Settling ends after this long without progress. */
const settleMs = 60_000;
/** Between two starts of a worker: a few hundred records a second together are too many for a busy machine. */
const everyMs = 60;

const programOf = (file: string, name: string) => ({ file: fileURLToPath(new URL(file, import.meta.url)), name });
/** Batches that arrived behind those of a successor. */
export const staleBatch = "an event of a stale fan-out, under the lower token";

/** Fan-outs to one receiver, and workers that write runs, in processes of their own under faults; the ledger judges. */
export async function runSinkRound(options: SinkRoundOptions): Promise<RoundReport> {
  const { place, ttlMs, folder, seed, ms } = options;
  const from = systemClock.mono();
  const receiver = new ReceiverHandle(join(folder, "receiver.jsonl"));
  const url = place.urlFor(0);
  const sendMs = 2 * ttlMs; // a stop that does not outlast the lease must not look like a lost answer
  const started: string[] = [];
  const replicas: Replica[] = [];
  let client: Tape | undefined;
  try {
    client = await persistently(() => Tape.open({ store: url, runner: createRunner({ workflows: [] }), work: false }));
    const orders = { url, ttlMs, receiver: await receiver.listen(), sendMs, everyMs };
    const processes = (count: number, program: ReturnType<typeof programOf>): Replica[] => {
      const note = (id: unknown): void => void started.push(String(id));
      return Array.from({ length: count }, (_, k) => new Replica(k + 1, { orders, folder, program, note }));
    };
    const fanouts = processes(options.fanouts ?? 3, programOf("fanout.ts", "fanout"));
    const writers = processes(options.writers ?? 2, programOf("writer.ts", "writer"));
    replicas.push(...fanouts, ...writers);
    await Promise.all(replicas.map((replica) => replica.start()));
    const injections: Injection[] = [];
    const repairs = new Set<Promise<void>>();
    let deaths = 0;
    const deployment: SinkDeployment = {
      ...{ fanouts, writers, receiver, ttlMs, sendMs, injections, random: seededRandom(`${seed} faults`) },
      holder: async () => {
        const lease = await persistently(() => client!.store.read.lease(client!.tenant, { name: `sink ${sinkName}` }));
        return lease?.state === "HELD" ? (lease.label ?? undefined) : undefined;
      },
      died: () => void deaths++,
      repair(work) {
        const all = work.finally(() => repairs.delete(all));
        repairs.add(all);
        all.catch(() => {}); // `repaired` rejects with it
      },
    };
    const all = [...sinkFaults(deployment), ...(options.more?.(deployment) ?? [])];
    const faults = all.filter(options.only ?? (() => true));
    const repaired = async (): Promise<void> => {
      while (repairs.size > 0) await Promise.all(repairs);
    };
    await injectFaults({ faults, injections, random: deployment.random, ms, repaired });
    const faultsEndedAt = systemClock.mono();
    for (const writer of writers) writer.send({});
    const evidence = await settled(client, receiver, { started, deaths, loss: options.loss === true });
    const settledMs = Math.round(systemClock.mono() - faultsEndedAt);
    const seconds = Math.round((systemClock.mono() - from) / 1_000);
    return {
      ...reportOf(evidence, injections, faults, replicas),
      name: options.name,
      seconds,
      lines: lines(evidence, settledMs),
    };
  } finally {
    for (const replica of replicas) replica.kill();
    await Promise.all(replicas.map((replica) => replica.gone()));
    await receiver.close();
    await client?.close();
  }
}

/** Waits until every run has ended and every event has arrived, or nothing makes progress any more. */
async function settled(
  client: Tape,
  receiver: ReceiverHandle,
  known: Pick<SinkEvidence, "started" | "deaths" | "loss">,
): Promise<SinkEvidence> {
  let progressAt = systemClock.mono();
  for (let last = ""; ; await systemClock.sleep(200)) {
    const live = await persistently(() => liveRuns(client));
    const ids = await persistently(() => feedIds(client.store));
    const ledger = receiver.ledger();
    const received = new Set(ledger.map(({ id }) => id));
    const missing = ids.filter((id) => !received.has(id)).length;
    const state = `${live} ${missing} ${ids.length} ${ledger.length}`;
    const now = systemClock.mono();
    if (state !== last) progressAt = now;
    last = state;
    if ((live > 0 || missing > 0) && now - progressAt < settleMs) continue;
    const runs = await allRuns(client);
    const letters = await persistently(() => client.store.read.deadLetters(client.tenant, sinkName, {}));
    return { ...known, runs, ids, ledger, window, deadLetters: letters.length };
  }
}

function reportOf(
  evidence: SinkEvidence,
  injections: readonly Injection[],
  faults: readonly Fault[],
  replicas: readonly Replica[],
): Omit<RoundReport, "name" | "seconds" | "lines"> {
  const rules = judgeSink(evidence);
  const effective = effectiveKinds(injections);
  const { perTerm } = repeatsOf(evidence.ledger);
  return {
    violations: [
      ...replicas.flatMap(({ collapses }) => collapses),
      ...faults.filter(({ kind }) => !effective.has(kind)).map(({ kind }) => `inconclusive: ${kind} never took effect`),
      ...rules.flatMap(({ broken }) => broken),
    ],
    injections,
    faults: faults.map(({ kind, effectiveWhen }) => ({ kind, effectiveWhen })),
    notRun: [],
    states: {
      "a takeover of a sink": perTerm.size - 1,
      "an event that a successor repeated": [...perTerm.values()].reduce((sum, times) => sum + times, 0),
      [staleBatch]: staleEntries(evidence.ledger),
      ...(evidence.loss && {
        "a restore that a sink announced": evidence.ledger.filter(({ id }) => isRestore(id)).length,
        "an event that was sent and then lost by the store": sentAndLost(evidence).length,
      }),
    },
    rules,
    lost: evidence.loss ? lostOf(evidence) : [],
  };
}

function lines({ started, runs, ids, ledger, deaths }: SinkEvidence, settledMs: number): string[] {
  const { perTerm } = repeatsOf(ledger);
  return [
    `runs: ${started.length} starts acknowledged, ${runs.length} runs; everything had arrived ${settledMs} ms after the faults`,
    `ledger: ${ledger.length} events received, ${ids.length} records in the feed, ${ledger.length - new Set(ledger.map(({ id }) => id)).size} repeats`,
    `terms: ${perTerm.size} after ${deaths} deaths; at most ${Math.max(0, ...perTerm.values())} repeats in a term, of a window of ${window}`,
    `${staleEntries(ledger)} events arrived behind a successor's, under the lower token`,
  ];
}
