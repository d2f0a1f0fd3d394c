import { type Clock, systemClock } from "../base/clock.ts";
import type { LogOption } from "../base/log.ts";
import { loopbackAddresses } from "../base/loopback.ts";
import { type Random, systemRandom } from "../base/random.ts";
import { identify } from "../lease/identity.ts";
import { TapeError } from "../model/errors.ts";
import { resolve } from "../reactor/resolve.ts";
import { createRunner, type Runner } from "../sdk/workflow.ts";
import type { TokenLifetimes } from "../server/handler.ts";
import type { ServerLimits } from "../server/limits.ts";
import type { ListenOptions, Timeouts } from "../server/listen.ts";
import type { TapeServer } from "../server/server.ts";
import type { Store } from "../store/contract.ts";
import { openStore } from "./open-store.ts";
import { appLog, warnOfOldNode } from "./options.ts";

export interface ServeOptions {
  /** A store, or the URL of one; what is opened here is closed here. */
  readonly store: Store | string;
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Default 7878; 0: any that is free. */
  readonly port?: number;
  /** none (default): only a loopback address may be bound, and whoever reaches it is admin. */
  readonly credentials?: "required" | "none";
  /** `id.secret` of an admin of `tenant`, to make the first tokens with. */
  readonly bootstrapToken?: string;
  /** accepted: tokens may travel in clear to an address that others reach, because something in front of it speaks TLS. */
  readonly plain?: "refused" | "accepted";
  /** Where browsers find this server, if a proxy in front of it has another name: `https://tape.example`. */
  readonly origin?: string;
  /** PEM texts. */
  readonly tls?: ListenOptions["tls"];
  /** The tenant of whoever runs the server. Default "default". */
  readonly tenant?: string;
  readonly limits?: Partial<ServerLimits>;
  /** How long tokens hold that are made through this server. */
  readonly lifetimes?: TokenLifetimes;
  readonly timeouts?: Partial<Timeouts>;
  /** `"10.0.0.0/8, ::1"`: proxies whose Forwarded or X-Forwarded-For header is believed. */
  readonly trustedProxies?: string;
  /** Schemas of its workflows and gates refuse bad inputs and signals on receipt. Effects whose acts are settled here at once when a person resolves them as happened; others wait for a reconciler that has them. */
  readonly runner?: Runner;
  readonly version?: string;
  /** For `durable-tape dev`: its page has buttons that a server in earnest must not show. */
  readonly dev?: boolean;
  readonly clock?: Clock;
  readonly random?: Random;
  /** As in `Tape.open`. */
  readonly log?: LogOption;
}

export interface Serving extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly server: TapeServer;
  /** Another certificate for new connections. */
  renewTls(tls: NonNullable<ListenOptions["tls"]>): void;
  /** Takes no more calls, finishes those under way, ends streams. false: some took longer than `withinMs` (30 s). */
  stop(withinMs?: number): Promise<boolean>;
}

const defaultDrainMs = 30_000;

/**
 * The store over HTTP, for programs elsewhere. Any number of them may serve one PostgreSQL: none keeps anything that
 * another would miss.
 *
 * @example
 * await using serving = await serve({ store: "sqlite:./tape.db", port: 0 });
 * console.log(serving.url);
 */
export async function serve(options: ServeOptions): Promise<Serving> {
  (await import("./serve-options.ts")).checkServeOptions(options);
  const { host = "127.0.0.1", port = 7878, credentials = "none", tenant = "default", version = "0.0.0" } = options;
  const { clock = systemClock, random = systemRandom, tls, limits, timeouts, bootstrapToken, trustedProxies } = options;
  const log = appLog(options.log, "serve");
  warnOfOldNode(log);
  const [own] = await loopbackAddresses(host);
  if (credentials === "required" && tls === undefined && options.plain !== "accepted" && own === undefined) {
    const message = `tokens would go in clear to ${host}: set tape.server.tls, or tape.server.plain to accepted where a proxy speaks TLS`;
    throw new TapeError("TAPE_SERVER_EXPOSED", message, { host });
  }
  if (credentials === "none" && own === undefined) {
    const message = `without credentials the server may listen on a loopback address only, not on ${host}`;
    throw new TapeError("TAPE_SERVER_EXPOSED", message, { host });
  }
  // Loaded here: most programs that load this module serve nothing.
  const [{ trustedProxies: trustedIn }, { TapeServer }, { listen }, { builtDashboard }] = await Promise.all([
    import("../server/address.ts"),
    import("../server/server.ts"),
    import("../server/listen.ts"),
    import("../server/static.ts"),
  ]);
  const runner = options.runner ?? createRunner({ workflows: [] });
  const seams = { clock, random, log };
  const opened = typeof options.store === "string";
  const store = opened ? await openStore(options.store as string, seams) : (options.store as Store);
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
      resolve: (footing, resolving) => resolve({ ...footing, runner }, resolving),
      ...(bootstrapToken === undefined ? {} : { bootstrap: bootstrapToken }),
      ...(limits === undefined ? {} : { limits }),
      ...(options.origin === undefined ? {} : { origin: options.origin }),
      ...(options.lifetimes === undefined ? {} : { lifetimes: options.lifetimes }),
    });
    const listening = await listen(server, {
      ...{ host, port, clock, log },
      // What was judged is what is bound: a name may lead elsewhere a moment later.
      ...(own === undefined ? {} : { address: own }),
      ...(tls === undefined ? {} : { tls }),
      ...(timeouts === undefined ? {} : { timeouts }),
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
