import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/base/clock.ts";
import { openStore } from "../../src/host/open-store.ts";
import type { Chunk } from "../../src/store/contract/store.ts";
import { StreamTails } from "../../src/store/stream-tails.ts";

const tenant = "default";
const script = fileURLToPath(new URL("./talker.ts", import.meta.url));

export interface KillOptions {
  readonly url: string;
  readonly ttlMs: number;
  readonly kills: number;
  readonly bodies: number;
  readonly chunks: number;
  readonly gapMs: number;
  /** A number from 0 to 1: when the nth process is killed. */
  readonly random: () => number;
}

export interface KillVerdict {
  readonly kills: number;
  readonly bodies: number;
  /** Of the reader that followed through all kills, and of one that came at the end. */
  readonly duplicates: number;
  readonly gaps: number;
  readonly rewinds: number;
  /** Offsets that did not grow. */
  readonly disordered: number;
}

/** A talker that is ready. */
function launch({ url, ttlMs }: KillOptions, start = ""): Promise<ChildProcess> {
  const child = fork(script, [url, String(ttlMs), start], {
    execArgv: [],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  return new Promise((resolve, reject) => {
    child.once("message", () => resolve(child));
    child.once("exit", (code) => reject(new Error(`the talker ended with ${code}`)));
  });
}

/** The process that wrote the chunk, as its text says. */
const pidOf = (chunk: Chunk): number => ("value" in chunk ? Number(/ (\d+)\./.exec(String(chunk.value))?.[1]) : 0);

/** What a reader keeps that drops a part when it starts again. */
function keptOf(chunks: readonly Chunk[]): string[] {
  let kept: Chunk[] = [];
  for (const chunk of chunks) {
    if ("rewound" in chunk) kept = kept.filter(({ part }) => part !== chunk.part);
    else kept.push(chunk);
  }
  return kept.map((chunk) => ("value" in chunk ? String(chunk.value) : ""));
}

/**
 * Kills -9 the process that streams, again and again, each time in the middle of a body; a standby takes over. What
 * readers keep must be what the call with the recorded result of each body wrote, once and in order.
 */
export async function killStreams(options: KillOptions): Promise<KillVerdict> {
  const { url, kills, bodies, chunks, gapMs, random } = options;
  const store = await openStore(url);
  const seen: Chunk[] = [];
  const children = new Map<number, ChildProcess>();
  const add = async (start?: string): Promise<void> => {
    const child = await launch(options, start);
    children.set(child.pid!, child);
  };
  await add();
  await add(JSON.stringify({ bodies, chunks, gapMs }));
  const reading = (async () => {
    const { signal } = new AbortController();
    const target = { tenant, run: "talk", stream: "tokens", from: 0, signal };
    for await (const page of new StreamTails(store, systemClock).follow(target)) seen.push(...page);
    return true;
  })();
  /**
   * The process that writes now and has finished a body: without progress between its crashes, a run becomes STUCK after
   * a few of them. undefined: the run has ended.
   */
  const writer = async (): Promise<ChildProcess | undefined> => {
    for (;;) {
      const [last] = seen.slice(-1);
      const pid = last === undefined ? 0 : pidOf(last);
      const parts = new Set(seen.flatMap((chunk) => (pidOf(chunk) === pid ? [chunk.part] : [])));
      const child = children.get(pid);
      if (child !== undefined && parts.size > 1) return child;
      if (await Promise.race([reading, systemClock.sleep(5).then(() => false)])) return undefined;
    }
  };
  let killed = 0;
  try {
    for (; killed < kills; killed++) {
      const child = await writer();
      if (child === undefined) break;
      await systemClock.sleep(random() * chunks * gapMs);
      child.kill("SIGKILL");
      children.delete(child.pid!);
      await add();
    }
    await reading;
    return { kills: killed, bodies, ...(await judge(store, seen)) };
  } finally {
    for (const child of children.values()) child.kill("SIGKILL");
    await store.close();
  }

  async function judge(of: typeof store, live: readonly Chunk[]): Promise<Omit<KillVerdict, "kills" | "bodies">> {
    const records = await of.read.journal(tenant, { run: "talk" });
    const calls = records.flatMap((record) => (record.kind === "step.done" ? [String(record.data.value)] : []));
    const expected = calls.flatMap((call) => Array.from({ length: chunks }, (_, k) => `${call} ${k}`));
    const late: Chunk[] = [];
    for (let from = 0; ; from = late.at(-1)!.offset + 1) {
      const [page] = await of.read.chunks(tenant, [{ run: "talk", stream: "tokens", from }]);
      late.push(...(page?.chunks ?? []));
      if (page?.more !== true) break;
    }
    const readers = [keptOf(live), late.flatMap((chunk) => ("value" in chunk ? [String(chunk.value)] : []))];
    const extra = (kept: readonly string[]): number =>
      kept.length - new Set(kept.filter((text) => expected.includes(text))).size;
    const missing = (kept: readonly string[]): number => expected.filter((text) => !kept.includes(text)).length;
    const wrongOrder = (kept: readonly string[]): number => (kept.join() === expected.join() ? 0 : 1);
    const grows = (all: readonly Chunk[]): number =>
      all.filter(({ offset }, k) => k > 0 && offset <= all[k - 1]!.offset).length;
    return {
      duplicates: readers.reduce((sum, kept) => sum + extra(kept), 0),
      gaps: readers.reduce((sum, kept) => sum + missing(kept), 0),
      rewinds: live.filter((chunk) => "rewound" in chunk).length,
      disordered: grows(live) + grows(late) + readers.reduce((sum, kept) => sum + wrongOrder(kept), 0),
    };
  }
}
