import { once } from "node:events";
import { type Prober, type ServerProcess, startProber, startServer } from "../../test/attacks/open-target.ts";
import type { Patch } from "../../test/planted/bug.ts";
import { type Memory, patchesVariable } from "./memory.ts";

/** The server under test and its prober, each in a process of its own. */
export interface Target {
  readonly port: number;
  readonly url: string;
  readonly prober: Prober;
  alive(): boolean;
  /** The end of its standard error. */
  log(): string;
  /** Measured after a collection. */
  memory(): Promise<Memory>;
  /** Resolves when no request is in flight: the server also finishes requests of callers that left. */
  settled(): Promise<void>;
  close(): Promise<void>;
}

/** A stall that counts is about twelve times as long. */
const probeEveryMs = 20;
const preload = new URL("preload.ts", import.meta.url).href;

export async function startTarget(store: string, patches: readonly Patch[] = []): Promise<Target> {
  const served: ServerProcess = await startServer({
    store,
    node: ["--expose-gc", "--import", preload],
    env: { [patchesVariable]: JSON.stringify(patches) },
  });
  const { port, process: child } = served;
  const prober = await startProber(port, child.pid!, probeEveryMs);
  const url = `http://127.0.0.1:${port}`;
  const alive = (): boolean => child.exitCode === null && child.signalCode === null;
  return {
    ...{ port, url, prober, alive, log: served.log },
    async memory() {
      const message = once(child, "message") as Promise<[Memory]>;
      child.send("memory");
      return (await message)[0];
    },
    async settled() {
      for (;;) {
        const text = await fetch(`${url}/metrics`).then((response) => response.text());
        const [, calls = "0"] = /^tape_http_requests_in_flight (\d+)$/m.exec(text) ?? [];
        if (Number(calls) <= 1) return; // this request
      }
    },
    async close() {
      prober.stop();
      child.kill("SIGKILL");
      await served.gone;
    },
  };
}
