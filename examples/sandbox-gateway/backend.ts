import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Report } from "./phases.ts";

/** The compute backend, shared by all replicas. It knows nothing about leases. */
export interface Backend {
  create(id: string): Promise<void>;
  remove(id: string): Promise<void>;
  get(id: string): Promise<Report | undefined>;
  list(): Promise<Report[]>;
  /** Yields every change from now on, until the signal aborts. */
  watch(signal: AbortSignal): AsyncIterable<Report>;
}

export class MemoryBackend implements Backend {
  readonly #reports = new Map<string, Report>();
  readonly #watchers = new Set<(report: Report) => void>();

  async create(id: string): Promise<void> {
    this.report({ id, condition: "starting", deleting: false });
  }

  async remove(id: string): Promise<void> {
    const found = this.#reports.get(id);
    if (found !== undefined) this.report({ ...found, deleting: true });
  }

  async get(id: string): Promise<Report | undefined> {
    return this.#reports.get(id);
  }

  async list(): Promise<Report[]> {
    return [...this.#reports.values()];
  }

  async *watch(signal: AbortSignal): AsyncGenerator<Report> {
    const queue: Report[] = [];
    let wakeUp = (): void => {};
    const watcher = (report: Report): void => {
      queue.push(report);
      wakeUp();
    };
    const stop = (): void => wakeUp();
    this.#watchers.add(watcher);
    signal.addEventListener("abort", stop);
    try {
      while (!signal.aborted) {
        const report = queue.shift();
        if (report !== undefined) yield report;
        else
          await new Promise<void>((resolve) => {
            wakeUp = resolve;
          });
      }
    } finally {
      this.#watchers.delete(watcher);
      signal.removeEventListener("abort", stop);
    }
  }

  get watchers(): number {
    return this.#watchers.size;
  }

  /** Changes a machine and notifies the watchers. */
  report(report: Report): void {
    this.#reports.set(report.id, report);
    for (const watcher of this.#watchers) watcher(report);
  }

  /** Removes a machine without notifying the watchers, so that only a sweep can notice. */
  vanish(id: string): void {
    this.#reports.delete(id);
  }
}

/** A call that the backend received. */
export interface Call {
  readonly replica: string;
  readonly operation: "create" | "remove" | "get" | "list" | "watch";
  readonly id?: string;
}

/** Serves a backend over HTTP, so that replicas in several processes share it. */
export async function serveBackend(backend: Backend): Promise<{ url: string; calls: Call[]; close(): void }> {
  const calls: Call[] = [];
  const server: Server = createServer(async (request, response) => {
    const [, operation = "", id = ""] = (request.url ?? "").split("/").map(decodeURIComponent);
    const replica = String(request.headers["x-replica"] ?? "");
    calls.push({ replica, operation: operation as Call["operation"], ...(id === "" ? {} : { id }) });
    response.setHeader("content-type", "application/json");
    if (operation === "watch") {
      const closed = new AbortController();
      response.on("close", () => closed.abort());
      response.flushHeaders();
      for await (const report of backend.watch(closed.signal)) response.write(`${JSON.stringify(report)}\n`);
      return void response.end();
    }
    const value =
      operation === "list"
        ? await backend.list()
        : operation === "get"
          ? ((await backend.get(id)) ?? null)
          : await backend[operation as "create" | "remove"](id);
    response.end(JSON.stringify(value ?? null));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, calls, close };
}

export function httpBackend(url: string, replica: string): Backend {
  const headers = { "x-replica": replica };
  const call = async (path: string): Promise<unknown> => {
    const response = await fetch(`${url}/${path}`, { headers });
    if (!response.ok) throw new Error(`the backend returned ${response.status}`);
    return response.json();
  };
  return {
    create: async (id) => void (await call(`create/${encodeURIComponent(id)}`)),
    remove: async (id) => void (await call(`remove/${encodeURIComponent(id)}`)),
    get: async (id) => ((await call(`get/${encodeURIComponent(id)}`)) as Report | null) ?? undefined,
    list: async () => (await call("list")) as Report[],
    async *watch(signal) {
      const response = await fetch(`${url}/watch`, { headers, signal });
      let rest = "";
      for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
        const lines = (rest + chunk).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) yield JSON.parse(line) as Report;
      }
    },
  };
}
