import pg from "pg";
import type { Clock } from "../../base/clock.ts";
import { reasonOf } from "../../base/reason.ts";
import { TapeError } from "../../model/errors.ts";
import { assertProduct } from "./products.ts";
import type { Host, PostgresSettings } from "./url.ts";

type ClientOptions = Pick<PostgresSettings, "connectionString" | "transactionBoundMs"> & {
  readonly hosts: readonly Host[];
};

/** What a host was last seen as. */
interface Sight {
  readonly state: "writable" | "standby" | "read-only" | "failed";
  readonly timeline?: string | undefined;
  readonly text: string;
}

/**
 * A host that hangs delays nothing for longer than this part of the transaction bound: a broken address, a survey of all
 * hosts and a connection to the new primary fit into one bound, within which a call is retried.
 */
const hostShare = 3;
/** Once a writable host has answered, the others have this long: of two that accept writes the later timeline is right. */
const graceMs = 100;
/** From one survey to the next: while no host accepts writes, every waiting call wants one. */
const surveyMs = 100;

const nameOf = ({ host, port }: Host): string => (host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`);

/**
 * Which of several hosts accepts writes. All are asked at once, so that one that hangs does not delay the others.
 *
 *   unknown ──survey──▶ known ──a failed connection, a read-only answer──▶ unknown
 *
 * A process never returns to an earlier timeline than it has used: a server with one is a former primary, and what it
 * accepts is lost as soon as it rejoins the cluster.
 */
export class WritableHosts {
  readonly #options: ClientOptions;
  readonly #clock: Clock;
  readonly #onChange: (server: string, from: string | undefined) => void;
  readonly #sights = new Map<Host, Sight>();
  readonly #hostMs: number;
  #known: Host | undefined;
  #last: Host | undefined;
  #finding: Promise<Host> | undefined;
  #timeline = "";
  #surveyedAt = Number.NEGATIVE_INFINITY;
  readonly #movers = new Set<() => void>();
  /** Increased when another host is the writable one, or the known one turns read-only: older connections must not be used. */
  #generation = 0;

  constructor(
    options: ClientOptions,
    clock: Clock,
    onChange: (server: string, from: string | undefined) => void = () => {},
  ) {
    this.#options = options;
    this.#clock = clock;
    this.#onChange = onChange;
    this.#hostMs = Math.ceil(options.transactionBoundMs / hostShare);
  }

  get generation(): number {
    return this.#generation;
  }

  get hostMs(): number {
    return this.#hostMs;
  }

  /** The writable host, or the one that was so last. */
  get server(): string | undefined {
    return this.#last && nameOf(this.#last);
  }

  /** Each host with what it was last seen as. */
  get summary(): string {
    return this.#options.hosts
      .map((host) => `${nameOf(host)} ${this.#sights.get(host)?.text ?? "did not answer"}`)
      .join("; ");
  }

  find(): Promise<Host> {
    if (this.#known !== undefined) return Promise.resolve(this.#known);
    this.#finding ??= this.#survey().finally(() => {
      this.#finding = undefined;
    });
    return this.#finding;
  }

  /** Calls `fn` when connections must be opened again; the returned function ends that. */
  onMove(fn: () => void): () => void {
    this.#movers.add(fn);
    return () => void this.#movers.delete(fn);
  }

  #move(): void {
    this.#generation++;
    for (const fn of [...this.#movers]) fn();
  }

  /** A connection to the host failed: before another one is used, all hosts are asked again. */
  suspect(host: Host, error: unknown): void {
    this.#sights.set(host, failedSight(error));
    if (this.#known === host) this.#known = undefined;
  }

  /** The host no longer accepts writes: no connection to it may be used, for reads neither. */
  abandon(host: Host, sight: Sight = readOnlySight): void {
    this.#sights.set(host, sight);
    if (this.#last !== host) return;
    this.#known = undefined;
    this.#move();
  }

  /** Throws unless the server on this connection accepts writes and is no former primary. */
  async assertWritable(client: pg.Client, host: Host): Promise<void> {
    const sight = this.#judged(await sightOf(client));
    if (sight.state === "writable") return void this.#sights.set(host, sight);
    this.abandon(host, sight);
    throw new Error(`${nameOf(host)} ${sight.text}`);
  }

  #judged(sight: Sight): Sight {
    const { state, timeline = "" } = sight;
    if (state !== "writable" || timeline === "" || timeline >= this.#timeline) return sight;
    const text = `is a former primary: its timeline is ${timeline}, and this process has used ${this.#timeline}`;
    return { state: "read-only", timeline, text };
  }

  async #survey(): Promise<Host> {
    const { hosts } = this.#options;
    const waitMs = this.#surveyedAt + surveyMs - this.#clock.mono();
    if (waitMs > 0) await this.#clock.sleep(waitMs);
    this.#surveyedAt = this.#clock.mono();
    const found = await new Promise<Host | undefined>((resolve, reject) => {
      let open = hosts.length;
      let waiting = false;
      const end = (): void => resolve(this.#newest());
      for (const host of hosts) {
        this.#sights.delete(host);
        void this.#probe(host).then((sight) => {
          if (sight instanceof TapeError) return reject(sight);
          this.#sights.set(host, this.#judged(sight));
          if (--open === 0) return end();
          if (sight.state !== "writable" || waiting) return;
          waiting = true;
          this.#clock.after(graceMs, end);
        });
      }
      this.#clock.after(this.#hostMs, end);
    });
    if (found === undefined) throw new Error(`no server accepts writes: ${this.summary}`);
    const { timeline = "" } = this.#sights.get(found)!;
    if (timeline > this.#timeline) this.#timeline = timeline;
    this.#known = found;
    const former = this.#last;
    this.#last = found;
    if (former !== found) {
      this.#move();
      this.#onChange(nameOf(found), former && nameOf(former));
    }
    return found;
  }

  #newest(): Host | undefined {
    const writable = this.#options.hosts.filter((host) => this.#sights.get(host)?.state === "writable");
    const timelineOf = (host: Host): string => this.#sights.get(host)?.timeline ?? "";
    return writable.reduce<Host | undefined>(
      (best, host) => (best !== undefined && timelineOf(best) >= timelineOf(host) ? best : host),
      undefined,
    );
  }

  async #probe(host: Host): Promise<Sight | TapeError> {
    const { connectionString } = this.#options;
    const client = new pg.Client({
      connectionString,
      connectionTimeoutMillis: this.#hostMs,
      query_timeout: this.#hostMs,
      application_name: "durable-tape hosts",
    });
    client.on("error", () => {});
    directTo(client, host);
    try {
      await client.connect();
      return await sightOf(client);
    } catch (error) {
      return error instanceof TapeError ? error : failedSight(error);
    } finally {
      void client.end().catch(() => {});
      (client as pg.Client & { unref(): void }).unref(); // a host that hangs now must not keep the process alive
    }
  }
}

const failedSight = (error: unknown): Sight => ({ state: "failed", text: `failed: ${reasonOf(error).slice(0, 200)}` });
const readOnlySight: Sight = { state: "read-only", text: "is read-only" };

async function sightOf(client: pg.Client): Promise<Sight> {
  const { rows } = await client.query("select version() as version");
  assertProduct(String((rows[0] as { version: unknown }).version));
  const state = await client.query(
    "select pg_is_in_recovery() as standby, current_setting('transaction_read_only') as read_only",
  );
  const { standby, read_only } = state.rows[0] as { standby: boolean; read_only: string };
  if (standby) return { state: "standby", text: "is a standby" };
  if (read_only === "on") return readOnlySight;
  // Some services do not reveal it.
  const timeline = await client.query("select substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) as timeline").then(
    ({ rows: [row] }) => (row as { timeline: string }).timeline,
    () => undefined,
  );
  return { state: "writable", timeline, text: "accepts writes" };
}

/** The driver connects to the first host of the URL; this client shall connect to another one. */
export function directTo(client: pg.Client, { host, port }: Host): void {
  const parameters = (client as unknown as { readonly connectionParameters: object }).connectionParameters;
  for (const target of [client, parameters]) Object.assign(target, { host, port });
}
