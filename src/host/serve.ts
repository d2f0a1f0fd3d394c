import { systemClock } from "../base/clock.ts";
import { defined } from "../base/defined.ts";
import { loopbackAddresses } from "../base/loopback.ts";
import { systemRandom } from "../base/random.ts";
import { identify } from "../lease/identity.ts";
import { TapeError } from "../model/errors.ts";
import { createRunner } from "../sdk/workflow.ts";
import type { ListenOptions } from "../server/listen.ts";
import type { TapeServer } from "../server/server.ts";
import { withoutBlobs } from "../store/blob-store.ts";
import type { Store } from "../store/contract/store.ts";
import { openStore } from "./open-store.ts";
import { appLog, warnOfOldNode } from "./options.ts";
import type { ServeOptions } from "./serve-options.ts";

export type { ServeOptions } from "./serve-options.ts";

/** A server that accepts connections. */
export interface RunningServer extends AsyncDisposable {
  /** The address on which it listens. */
  readonly url: string;
  /** The port. */
  readonly port: number;
  readonly server: TapeServer;
  /** Replaces the certificate for new connections. */
  renewTls(tls: NonNullable<ListenOptions["tls"]>): void;
  /** Takes no more calls, finishes those in progress, ends streams. false: some took longer than `withinMs` (30 s). */
  stop(withinMs?: number): Promise<boolean>;
}

const defaultDrainMs = 30_000;

/**
 * Serves the store over HTTP. Any number of servers may share one PostgreSQL database: a server keeps no state that
 * another one would miss.
 *
 * @example
 * await using serving = await serve({ store: "sqlite:./tape.db", port: 0 });
 * console.log(serving.url);
 */
export async function serve(options: ServeOptions): Promise<RunningServer> {
  (await import("./serve-options.ts")).checkServeOptions(options);
  const { host = "127.0.0.1", port = 7878, credentials = "none", tenant = "default", version = "0.0.0" } = options;
  const { clock = systemClock, random = systemRandom, tls, limits, timeouts, bootstrapToken, trustedProxies } = options;
  const log = appLog(options.log, "serve");
  warnOfOldNode(log);
  const [loopback] = await loopbackAddresses(host);
  if (credentials === "required" && tls === undefined && options.plain !== "accepted" && loopback === undefined) {
    const message = `tokens would travel unencrypted to ${host}: set tape.server.tls, or tape.server.plain to accepted behind a TLS proxy`;
    throw new TapeError("TAPE_SERVER_EXPOSED", message, { host });
  }
  if (credentials === "none" && loopback === undefined) {
    const message = `without credentials the server may listen only on a loopback address, not on ${host}`;
    throw new TapeError("TAPE_SERVER_EXPOSED", message, { host });
  }
  // Loaded on demand: most programs that load this module do not serve.
  const [{ trustedProxies: trustedIn }, { TapeServer }, { listen }, { builtDashboard }] = await Promise.all([
    import("../server/address.ts"),
    import("../server/server.ts"),
    import("../server/listen.ts"),
    import("../server/static.ts"),
  ]);
  const runner = options.runner ?? createRunner({ workflows: [] });
  const seams = { clock, random, log };
  const opened = typeof options.store === "string";
  const store = opened ? await openStore(options.store as string, seams) : withoutBlobs(options.store as Store);
  let server: TapeServer | undefined;
  const close = async (): Promise<void> => {
    server?.close();
    if (opened) await store.close();
  };
  try {
    server = new TapeServer({
      ...{ store, credentials, tenant, version, dashboard: builtDashboard, ...seams },
      identity: identify(process.env, random),
      runner,
      dev: options.dev ?? false,
      ...defined({ bootstrap: bootstrapToken, limits, origin: options.origin, lifetimes: options.lifetimes }),
      ...defined({ streamOrigins: options.streamOrigins }),
      ...defined({ codecEndpoint: options.codecEndpoint }),
    });
    const listening = await listen(server, {
      ...{ host, port, clock, log },
      // Binds the address that was checked: the name may resolve differently a moment later.
      ...defined({ address: loopback, tls, timeouts }),
      ...(trustedProxies === undefined ? {} : { trusted: trustedIn(trustedProxies) }),
    });
    let stopping: Promise<boolean> | undefined;
    const stop = (withinMs = defaultDrainMs): Promise<boolean> => {
      stopping ??= listening.stop(withinMs).finally(close);
      return stopping;
    };
    const { url, renewTls } = listening;
    return {
      url,
      port: listening.port,
      server,
      stop,
      renewTls,
      [Symbol.asyncDispose]: async () => void (await stop()),
    };
  } catch (error) {
    await close();
    throw error;
  }
}
