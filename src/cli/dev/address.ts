import type { Log } from "../../base/log.ts";
import { type RunningServer, type ServeOptions, serve } from "../../host/serve.ts";
import { isTapeError } from "../../model/errors.ts";
import type { Store } from "../../store/contract/store.ts";

/** More dev servers than run on one machine; after this many, any free port is used. */
const maxPortTries = 20;

export interface BoundServer {
  readonly serving: RunningServer;
  /** The requested port, if another program has it. */
  readonly taken: number | undefined;
}

/** Serves the store at the requested address, or on the next free port. */
export async function serveNear(
  store: Store,
  address: { readonly host: string; readonly port: number },
  more: Omit<ServeOptions, "store" | "host" | "port"> & { readonly log: Log },
): Promise<BoundServer> {
  const { host, port } = address;
  for (let next = port; ; next += 1) {
    const tried = next - port >= maxPortTries || next > 65_535 ? 0 : next;
    try {
      const serving = await serve({ ...more, store, host, port: tried });
      return { serving, taken: tried === port ? undefined : port };
    } catch (error) {
      if (tried === 0 || !isTaken(error)) throw error;
    }
  }
}

function isTaken(error: unknown): boolean {
  return isTapeError(error) && (error.cause as { readonly code?: string } | undefined)?.code === "EADDRINUSE";
}
