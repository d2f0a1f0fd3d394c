import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type Singleton, Tape, type TapeOptions } from "../../src/exports/index.ts";
import type { Backend } from "./backend.ts";
import { type ReconcilerOptions, reconciler } from "./reconciler.ts";
import type { Sandboxes } from "./sandboxes.ts";

export const leaseName = "reconciler";

export interface GatewayOptions extends Pick<TapeOptions, "store" | "runner" | "log"> {
  readonly sandboxes: Sandboxes;
  readonly backend: Backend;
  readonly ttl: `${number}s`;
  readonly sweepEveryMs: number;
  readonly graceMs: number;
}

/** One replica: serves every request, and stands by for the reconciler's lease. */
export class Gateway {
  readonly app: Tape;
  readonly reconciler: Singleton;
  readonly url: string;
  readonly #close: () => Promise<void>;

  private constructor(app: Tape, singleton: Singleton, url: string, close: () => Promise<void>) {
    this.app = app;
    this.reconciler = singleton;
    this.url = url;
    this.#close = close;
  }

  static async open(options: GatewayOptions): Promise<Gateway> {
    const { store, runner, log, sandboxes, backend, ttl, sweepEveryMs, graceMs } = options;
    const app = await Tape.open({ store, runner, work: false, ...(log === undefined ? {} : { log }) });
    const work: ReconcilerOptions = { sandboxes, backend, sweepEveryMs, graceMs };
    const singleton = await app.singleton(leaseName, reconciler(work), { ttl });
    const server = createServer(async (request, response) => {
      const [, collection, id] = (request.url ?? "").split("/").map(decodeURIComponent);
      const reply = (status: number, body: unknown): void =>
        void response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
      try {
        if (collection === "healthz") return reply(200, await health(app, singleton));
        if (collection !== "sandboxes") return reply(404, { error: "not found" });
        if (request.method === "POST" && id) return reply(...(await create(id, sandboxes, backend)));
        if (request.method === "DELETE" && id) return reply(...(await remove(id, sandboxes, backend)));
        const found = id ? await sandboxes.get(id) : await sandboxes.list();
        return found === undefined ? reply(404, { error: "sandbox not found" }) : reply(200, found);
      } catch (error) {
        return reply(500, { error: String(error) });
      }
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return new Gateway(app, singleton, url, async () => {
      server.closeAllConnections();
      server.close();
      await app.close(); // drains the loops and releases the lease, so that another replica continues at once
      await sandboxes.close();
    });
  }

  close(): Promise<void> {
    return this.#close();
  }
}

type Reply = [status: number, body: unknown];

/** Writes the record first: the sweep finds a record without a machine, but not a machine without a record. */
async function create(id: string, sandboxes: Sandboxes, backend: Backend): Promise<Reply> {
  if (!(await sandboxes.create(id))) return [409, { error: "already exists" }];
  await backend.create(id);
  return [201, { id }];
}

async function remove(id: string, sandboxes: Sandboxes, backend: Backend): Promise<Reply> {
  for (;;) {
    const sandbox = await sandboxes.get(id);
    if (sandbox === undefined) return [404, { error: "sandbox not found" }];
    // Unguarded on purpose, because every replica serves requests. The version prevents a clash with the reconciler.
    if (sandbox.phase === "Deleted" || (await sandboxes.change(sandbox, "Deleting"))) break;
  }
  await backend.remove(id);
  return [202, { id }];
}

async function health(app: Tape, singleton: Singleton): Promise<unknown> {
  const lease = await app.leases.explain(leaseName);
  return { state: singleton.state, holder: lease?.label, token: String(lease?.token), lease: lease?.text };
}
