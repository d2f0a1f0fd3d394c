import type { Clock } from "../../base/clock.ts";
import { queueCycles } from "../../engine/queue-cycles.ts";
import { unservedQueues } from "../../engine/served.ts";
import type { QueueView, SlotView, Store } from "../../store/contract/store.ts";
import { readKeys, readQueues } from "../../store/read-queues.ts";
import { type Finding, finding, meantText } from "./finding.ts";
import { cycleText, keyText, slotsText } from "./queue-text.ts";

/** Counters and rows are read one after the other: only what differs twice, this far apart, is an error. */
const recheckAfterMs = 1_000;
const maxNamed = 5;

/** Checks of queues; none if the tenant has no queue. */
export async function queueFindings(store: Store, tenant: string, clock: Clock): Promise<Finding[]> {
  const queues = await readQueues(store.read, tenant);
  if (queues.length === 0) return [];
  const unserved = await unservedQueues(store, tenant);
  const cycles = await queueCycles(store, tenant);
  const blocked = await Promise.all(queues.map((queue) => blockedSlots(store, tenant, queue)));
  return [
    await countFinding(store, tenant, clock),
    finding(
      "queue slots",
      "no stuck or waiting run keeps others from starting",
      "warn",
      blocked.flat().join("; "),
      'Redrive or cancel these runs; or raise the limit: durable-tape queue set <queue> --concurrency N --reason "…". With counts: "running" a run that waits gives up its slot.',
    ),
    finding(
      "queue cycles",
      "no runs wait for slots that they keep from each other",
      "fail",
      cycles.slice(0, maxNamed).map(cycleText).join("; and "),
      'Cancel one run of each cycle: durable-tape cancel <run> --reason "…". To prevent it, start the children in one order of queues, or use counts: "running".',
    ),
    finding(
      "queue processes",
      "every queue with waiting runs has a process that serves it",
      "fail",
      unserved
        .map(({ queue, runs, suggestion }) => {
          const waits = runs === 1 ? "1 run waits" : `${runs} runs wait`;
          return `${waits} in queue ${queue}, which no process serves${meantText(suggestion)}`;
        })
        .join("; "),
      "Start a process whose runner lists it: createRunner({ workflows, queues: [NAME] }).",
    ),
  ];
}

async function countFinding(store: Store, tenant: string, clock: Clock): Promise<Finding> {
  const first = await miscounts(store, tenant);
  if (first.length > 0) await clock.sleep(recheckAfterMs);
  const second = first.length > 0 ? await miscounts(store, tenant) : [];
  return finding(
    "queue counts",
    "the counters of every queue match its runs",
    "fail",
    second.filter((text) => first.includes(text)).join("; "),
    "Counters and runs change in one transaction, so this is an error in Tape: report it with the output of durable-tape queue keys <queue> -o json.",
  );
}

/** Keys whose counters differ from the runs that they count. Queues with more runs than a page are not compared. */
async function miscounts(store: Store, tenant: string): Promise<string[]> {
  const queues = await readQueues(store.read, tenant);
  const found = await Promise.all(queues.map((queue) => miscountsOf(store, tenant, queue)));
  return found.flat();
}

async function miscountsOf({ read, limits }: Store, tenant: string, { name }: QueueView): Promise<string[]> {
  const page = { limit: limits.pageRows };
  const [held, queued, { keys, more }] = await Promise.all([
    read.queueSlots(tenant, name, { ...page, state: "HELD" }),
    read.queueSlots(tenant, name, { ...page, state: "QUEUED" }),
    readKeys(read, tenant, name),
  ]);
  if (more) return [];
  const differing = (what: string, rows: readonly SlotView[], isCut: boolean, counted: ReadonlyMap<string, number>) => {
    if (isCut) return [];
    const counts = new Map<string, number>();
    for (const { key } of rows) counts.set(key, (counts.get(key) ?? 0) + 1);
    return [...new Set([...counts.keys(), ...counted.keys()])].flatMap((key) => {
      const [runs, counter] = [counts.get(key) ?? 0, counted.get(key) ?? 0];
      return runs === counter ? [] : [`queue ${name}, key ${keyText(key)}: counted ${counter} ${what}, found ${runs}`];
    });
  };
  return [
    ...differing("running", held, held.more === true, new Map(keys.map(({ key, running }) => [key, running]))),
    ...differing("waiting", queued, queued.more === true, new Map(keys.map(({ key, waiting }) => [key, waiting]))),
  ];
}

/** Slots that are held by runs which do not execute, while others wait for a slot. */
async function blockedSlots({ read }: Store, tenant: string, queue: QueueView): Promise<string[]> {
  const { name, running, waiting, limits } = queue;
  if (waiting === 0 || running === 0) return [];
  const held = await read.queueSlots(tenant, name, { state: "HELD" });
  const isFull = limits.concurrency !== undefined && running >= limits.concurrency;
  const isBlocked = ({ status }: SlotView): boolean => status === "STUCK" || (isFull && status === "WAITING");
  const blocking = held.filter(isBlocked);
  if (blocking.length === 0) return [];
  const named = blocking.slice(0, maxNamed).map(({ run, status }) => `${run} (${status})`);
  const rest = blocking.length > maxNamed ? ", …" : "";
  const others = waiting === 1 ? "1 run waits" : `${waiting} runs wait`;
  return [
    `queue ${name}: ${blocking.length} of ${slotsText(running, limits.concurrency)} slots are held by ${named.join(", ")}${rest}, and ${others}`,
  ];
}
