import pg from "pg";
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { directTo, WritableHosts } from "./hosts.ts";
import type { Host, PostgresSettings } from "./url.ts";

/** A client of the driver that connects to the writable host. */
export class WritableClient extends pg.Client {
  readonly #hosts: WritableHosts;
  #host: Host | undefined;
  #generation = 0;

  constructor(hosts: WritableHosts, config: pg.ClientConfig = {}) {
    super({ ...config, connectionTimeoutMillis: hosts.hostMs });
    this.#hosts = hosts;
    // The pool listens only after the check; without a listener a connection that breaks before would end the process.
    this.on("error", () => {});
    // A server reports these when it is promoted, or made read-only while connections are open.
    const { connection } = this as unknown as { readonly connection: NodeJS.EventEmitter };
    connection.on("parameterStatus", ({ parameterName, parameterValue }: ParameterStatus) => {
      const readOnly = parameterName === "in_hot_standby" || parameterName === "default_transaction_read_only";
      if (readOnly && parameterValue === "on" && this.#generation > 0) this.#hosts.abandon(this.#host!);
    });
  }

  /** Whether the server of this connection is still the writable one. */
  get fresh(): boolean {
    return this.#generation === this.#hosts.generation;
  }

  /** Judges the error with which the connection is dropped: other connections to the server may be useless, too. */
  dropped(error: unknown): void {
    if (!(error instanceof Error) || !this.fresh || this.#host === undefined) return;
    const { code } = error as { code?: string };
    if (code === "25006") this.#hosts.abandon(this.#host);
    // No response, or the server shuts down: the connection may be alone with that, or the server may hang.
    else if (code === undefined || /^(57P0|08|E[A-Z]+$)/.test(code)) this.#hosts.suspect(this.#host, error);
  }

  override connect(): Promise<pg.Client>;
  override connect(callback: (error: Error) => void): void;
  override connect(callback?: (error: Error) => void): Promise<pg.Client> | undefined {
    const connecting = this.#connect();
    if (callback === undefined) return connecting.then(() => this);
    connecting.then(() => callback(undefined as never), callback);
    return undefined;
  }

  async #connect(): Promise<void> {
    const host = await this.#hosts.find();
    const { generation } = this.#hosts;
    directTo(this, host);
    this.#host = host;
    try {
      await super.connect();
    } catch (error) {
      this.#hosts.suspect(host, error);
      throw error;
    }
    try {
      await this.#hosts.assertWritable(this, host);
      this.#generation = generation;
    } catch (error) {
      void this.end().catch(() => {});
      throw error;
    }
  }
}

interface ParameterStatus {
  readonly parameterName: string;
  readonly parameterValue: string;
}

/** Absent: the settings name one server. */
export function hostsOf(settings: PostgresSettings, clock: Clock, log: Log): WritableHosts | undefined {
  const { hosts, connectionString, transactionBoundMs } = settings;
  if (hosts === undefined) return undefined;
  return new WritableHosts({ hosts, connectionString, transactionBoundMs }, clock, (server, former) =>
    log(former === undefined ? "info" : "warn", "store.server", { server, ...(former && { former }) }),
  );
}

/** The pool constructs it with its own settings. */
export const clientClass = (hosts: WritableHosts): (new () => pg.ClientBase) =>
  class extends WritableClient {
    constructor(config?: pg.ClientConfig) {
      super(hosts, config);
    }
  };
