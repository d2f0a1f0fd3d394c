import { type ChildProcess, fork } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openStore } from "../../../src/host/open-store.ts";
import type { Store } from "../../../src/store/contract/store.ts";
import { freshDatabase } from "../../../test/postgres/database.ts";
import { type PostgresServer, startPostgres } from "../../../test/postgres/server.ts";

/** `globex` is on shard a and `acme` on shard b, by their hashes. */
export const tenants = { a: "globex", b: "acme" } as const;

/** Two servers, a store of both, and worker processes whose effects are in one file. */
export class Scene {
  readonly servers: readonly PostgresServer[];
  readonly url: string;
  readonly store: Store;
  readonly #folder: string;
  readonly #children: ChildProcess[] = [];

  private constructor(servers: readonly PostgresServer[], url: string, store: Store) {
    this.servers = servers;
    this.url = url;
    this.store = store;
    this.#folder = mkdtempSync(join(tmpdir(), "tape-shards-"));
    writeFileSync(this.ledger, "");
  }

  static async open(): Promise<Scene> {
    const servers = await Promise.all([
      startPostgres({ major: 18, settings: {} }),
      startPostgres({ major: 18, settings: {} }),
    ]);
    const urls = await Promise.all(servers.map(({ url }) => freshDatabase(url)));
    const url = `shards:${urls.map((one, k) => `${"ab"[k]}=${one}?transaction_bound_ms=2000`).join(";")}`;
    return new Scene(servers, url, await openStore(url));
  }

  get ledger(): string {
    return join(this.#folder, "ledger");
  }

  /** How often the ledger has each line. */
  lines(): Map<string, number> {
    const counts = new Map<string, number>();
    for (const line of readFileSync(this.ledger, "utf8").split("\n")) {
      if (line !== "") counts.set(line, (counts.get(line) ?? 0) + 1);
    }
    return counts;
  }

  /** Starts a process and waits until it is ready. `onSteps` receives its progress. */
  async worker(tenant: string, steps = 0, onSteps: (steps: number) => void = () => {}): Promise<ChildProcess> {
    const child = this.#fork("worker.ts", [this.url, tenant, this.ledger, String(steps)]);
    await new Promise<void>((resolve, reject) => {
      child.on("message", (message: { ready?: true; steps?: number }) => {
        if (message.ready) resolve();
        else onSteps(message.steps ?? 0);
      });
      child.on("exit", (code) => reject(new Error(`a worker ended with ${code} before it was ready`)));
    });
    return child;
  }

  /** A process that moves a tenant. Resolves with its exit code; null: it was killed. */
  mover(tenant: string, to: string): { readonly child: ChildProcess; readonly done: Promise<number | null> } {
    const child = this.#fork("../../../bin/durable-tape.js", [
      ...["shard", "move", tenant, "--to", to, "--reason", "chaos", "--by", "chaos", "--store", this.url],
    ]);
    return { child, done: new Promise((resolve) => child.on("exit", (code) => resolve(code))) };
  }

  #fork(script: string, args: readonly string[]): ChildProcess {
    const path = fileURLToPath(new URL(script, import.meta.url));
    const child = fork(path, args, {
      execArgv: [],
      stdio: ["ignore", "ignore", script.endsWith(".js") ? "pipe" : "inherit", "ipc"],
    });
    this.#children.push(child);
    return child;
  }

  async close(): Promise<void> {
    for (const child of this.#children) child.kill("SIGKILL");
    await this.store.close();
    await Promise.all(this.servers.map((server) => server.stop()));
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Starts numbered runs of a tenant, until stopped; a start that fails is repeated, with the same id. */
export function starter(store: Store, tenant: string, everyMs: number) {
  let [stopped, started] = [false, 0];
  const loop = (async () => {
    while (!stopped) {
      const run = { id: `work-${started}`, workflow: "work", input: started };
      const [result] = await store.intake.createRuns(tenant, [run]).catch(() => []); // moving or down: tried again
      if (result?.ok) started++;
      await new Promise((resolve) => setTimeout(resolve, everyMs));
    }
  })();
  return {
    get count() {
      return started;
    },
    async stop(): Promise<number> {
      stopped = true;
      await loop;
      return started;
    },
  };
}

/** Waits until all numbered runs have ended, and returns what is wrong with them. */
export async function verdict(scene: Scene, tenant: string, count: number, withinMs: number): Promise<string[]> {
  const faults: string[] = [];
  const until = Date.now() + withinMs;
  const ids = Array.from({ length: count }, (_, k) => `work-${k}`);
  let open = ids;
  while (open.length > 0 && Date.now() < until) {
    const ended = new Set<string>();
    for (let k = 0; k < open.length; k += 100) {
      const rows = await scene.store.read.progress(tenant, open.slice(k, k + 100)).catch(() => []); // the shard is down
      for (const { id, status } of rows) if (status === "COMPLETED") ended.add(id);
    }
    open = open.filter((id) => !ended.has(id));
    if (open.length > 0) await new Promise((resolve) => setTimeout(resolve, 200));
  }
  if (open.length > 0) faults.push(`${open.length} of ${count} runs of ${tenant} have not ended: ${open.slice(0, 5)}`);
  const lines = scene.lines();
  for (let k = 0; k < count; k++) {
    const paid = lines.get(`paid ${tenant} ${k}`) ?? 0;
    if (paid !== 1) faults.push(`the payment of ${tenant} ${k} happened ${paid} times`);
  }
  return faults;
}
