// A separate process that requests a server's /livez all the time, and at the same time an idle control server, which
// measures the noise of the machine. It sends its measurements in response to "report".
import { readdirSync, readFileSync } from "node:fs";
import { Agent, createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { isMainThread, parentPort, Worker } from "node:worker_threads";

export interface ProbeReport {
  /** Milliseconds of each response, in order. */
  readonly server: readonly number[];
  readonly control: readonly number[];
  /** The server's peak memory in bytes; 0 if the system does not report it. */
  readonly rss: number;
  /**
   * The slowest response in milliseconds, minus the share of the machine: the time of the control at the same moment, or
   * the time for which a thread of the server was ready and got no core.
   */
  readonly excess: number;
}

async function probe(port: number, pid: number, pauseMs: number): Promise<void> {
  const control = await new Promise<number>((ready) => new Worker(new URL(import.meta.url)).once("message", ready));
  const agent = new Agent({ keepAlive: true });
  const nothing = () => ({ server: [] as number[], control: [] as number[], rss: 0, excess: 0 });
  let seen = nothing();
  let reportRequested = false;
  process.on("message", () => {
    reportRequested = true;
  });
  process.once("disconnect", () => process.exit());
  const took = (of: number): Promise<number> => {
    const startedAt = performance.now();
    return new Promise((done) => {
      const end = (): void => done(performance.now() - startedAt);
      const options = { host: "127.0.0.1", port: of, path: "/livez", agent };
      request(options, (response) => response.resume().once("end", end).once("error", end))
        .once("error", end)
        .end();
    });
  };
  process.send?.("ready");
  for (;;) {
    // Both at the same moment: a stall of the machine affects both figures.
    const before = waits(pid);
    const [serverMs, controlMs] = await Promise.all([took(port), took(control)]);
    seen.server.push(serverMs);
    seen.control.push(controlMs);
    seen.excess = Math.max(seen.excess, serverMs - Math.max(controlMs, waitedSince(before, pid)));
    seen.rss = Math.max(seen.rss, rssOf(pid));
    // Only here, because a pending response belongs to the report.
    if (reportRequested) {
      process.send?.(seen satisfies ProbeReport);
      seen = nothing();
      reportRequested = false;
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

/** How long each thread of the process has waited for a core; empty if the system does not report it. */
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

/** The longest wait of any thread: the main thread, or one that it waits for, as in a garbage collection. */
function waitedSince(before: ReadonlyMap<string, number>, pid: number): number {
  return Math.max(0, ...[...waits(pid)].map(([id, ms]) => ms - (before.get(id) ?? ms)));
}

if (isMainThread) {
  const [port, pid, pauseMs] = process.argv.slice(2).map(Number);
  await probe(port!, pid!, pauseMs!);
} else {
  const server = createServer((_request, response) => response.end("ok"));
  server.listen(0, "127.0.0.1", () => parentPort?.postMessage((server.address() as AddressInfo).port));
}
