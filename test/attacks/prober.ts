// A process beside the attack: asks a server's /livez all the time, and in turn a control that does nothing, so that the
// machine's own noise is known. What it has seen it sends when it is asked with "report".
import { readdirSync, readFileSync } from "node:fs";
import { Agent, createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { isMainThread, parentPort, Worker } from "node:worker_threads";

export interface Seen {
  /** Milliseconds that each answer took, in order. */
  readonly server: readonly number[];
  readonly control: readonly number[];
  /** The most memory that the server had, in bytes; 0 where the system does not say. */
  readonly rss: number;
  /**
   * The longest answer in milliseconds without what the machine took of it: what the control took at the same moment, or
   * how long one of the server's threads was ready and got no core.
   */
  readonly excess: number;
}

async function probe(port: number, pid: number, pauseMs: number): Promise<void> {
  const control = await new Promise<number>((ready) => new Worker(new URL(import.meta.url)).once("message", ready));
  const agent = new Agent({ keepAlive: true });
  const nothing = () => ({ server: [] as number[], control: [] as number[], rss: 0, excess: 0 });
  let seen = nothing();
  let asked = false;
  process.on("message", () => {
    asked = true;
  });
  process.once("disconnect", () => process.exit());
  const took = (of: number): Promise<number> => {
    const begun = performance.now();
    return new Promise((done) => {
      const end = (): void => done(performance.now() - begun);
      const options = { host: "127.0.0.1", port: of, path: "/livez", agent };
      request(options, (answer) => answer.resume().once("end", end).once("error", end))
        .once("error", end)
        .end();
    });
  };
  process.send?.("ready");
  for (;;) {
    // Both at the same moment: a stall of the machine is in both figures.
    const before = waits(pid);
    const [ours, theirs] = await Promise.all([took(port), took(control)]);
    seen.server.push(ours);
    seen.control.push(theirs);
    seen.excess = Math.max(seen.excess, ours - Math.max(theirs, waitedSince(before, pid)));
    seen.rss = Math.max(seen.rss, rssOf(pid));
    // Only here: an answer that is still awaited belongs to what is asked about.
    if (asked) {
      process.send?.(seen satisfies Seen);
      seen = nothing();
      asked = false;
    }
    await new Promise((again) => setTimeout(again, pauseMs));
  }
}

function rssOf(pid: number): number {
  try {
    return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}

/** How long each thread of the process has waited for a core since it began; none where the system does not say. */
function waits(pid: number): ReadonlyMap<string, number> {
  try {
    const folder = `/proc/${pid}/task`;
    const threads = readdirSync(folder);
    return new Map(
      threads.map((id) => [id, Number(readFileSync(`${folder}/${id}/schedstat`, "utf8").split(" ")[1]) / 1e6]),
    );
  } catch {
    return new Map();
  }
}

/** The longest that any of them waited: the main thread, or one that it waits for, as in a collection. */
function waitedSince(before: ReadonlyMap<string, number>, pid: number): number {
  return Math.max(0, ...[...waits(pid)].map(([id, ms]) => ms - (before.get(id) ?? ms)));
}

if (isMainThread) {
  const [port, pid, pauseMs] = process.argv.slice(2).map(Number);
  await probe(port!, pid!, pauseMs!);
} else {
  const server = createServer((_request, answer) => answer.end("ok"));
  server.listen(0, "127.0.0.1", () => parentPort?.postMessage((server.address() as AddressInfo).port));
}
