import type pg from "pg";
import { backoffMs } from "../../base/backoff.ts";
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import { errorFields } from "../../base/reason.ts";
import type { WakeHint } from "../contract/store.ts";
import type { WakeHub } from "../wake-hub.ts";
import type { Connections } from "./connections.ts";
import { transportOf, warnOfTransport } from "./transport.ts";

export interface NotifierOptions {
  readonly connections: Connections;
  readonly wakes: WakeHub;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Channel of the hints, as stored in the store. */
  readonly channel: string;
}

/** More hints than this at once are reduced to "check everything". A payload may have 8000 bytes. */
const maxHints = 40;
/** Interval between two notifications: a burst of commits becomes one. */
const quietMs = 5;

/** Interval between two hints to check everything. */
const anyMs = 100;
/** Longer than any name of ours. */
const maxNameChars = 4_096;

/**
 * Hints between processes: NOTIFY after the commit, not inside it (there it takes a lock of the whole database and
 * halves the throughput) unless the transaction is the caller's, coalesced, and LISTEN on its own connection. Lossy by nature: waiting processes poll, too.
 */
export class Notifier {
  readonly #options: NotifierOptions;
  readonly #sender: string;
  readonly #channel: string;
  #hints = new Map<string, WakeHint>();
  #sending = false;
  #listener: pg.Client | undefined;
  #listening = false;
  #closed = false;
  #wakingAll = false;
  #wakeAllAgain = false;

  constructor(options: NotifierOptions) {
    this.#options = options;
    this.#sender = options.random.bits63().toString(36);
    this.#channel = options.channel;
  }

  /** A hint of our own: sent to our listeners at once, to other processes soon. */
  send(wake: WakeHint): void {
    this.#options.wakes.emit(wake);
    this.#hints.set(JSON.stringify(wake), wake);
    if (this.#sending || this.#closed) return;
    this.#sending = true;
    this.#options.clock.immediate(() => void this.#drain());
  }

  async #drain(): Promise<void> {
    while (this.#hints.size > 0 && !this.#closed) {
      await this.#notify();
      await this.#options.clock.sleep(quietMs);
    }
    this.#sending = false;
  }

  async #notify(): Promise<void> {
    const values = [this.#channel, hintsText(this.#sender, [...this.#hints.values()])];
    this.#hints.clear();
    try {
      await this.#options.connections.askText(hintText, values);
    } catch {
      // lost hints are found by polling
    }
  }

  /**
   * Sends hints with the commit of a transaction on this connection, which alone knows when that is. Our own listeners
   * receive them as other processes do, so the sender is not ours.
   */
  async sendWithin(client: Pick<pg.ClientBase, "query">, wakes: readonly WakeHint[]): Promise<void> {
    const hints = [...new Map(wakes.map((wake) => [JSON.stringify(wake), wake])).values()];
    if (hints.length > 0) await client.query(notifyText, [this.#channel, hintsText("transaction", hints)]);
  }

  /** Starts listening, once. Without an address to listen on, only polling remains. */
  listen(): void {
    const { settings } = this.#options.connections;
    if (this.#listening || (settings.pooler === "transaction" && settings.listenUrl === undefined)) return;
    this.#listening = true;
    void this.#listenLoop();
  }

  async #listenLoop(): Promise<void> {
    const { clock, random, log, wakes, connections } = this.#options;
    const { listenUrl } = connections.settings;
    let warned = listenUrl === undefined; // opening the store has warned about the other address
    for (let tries = 1; !this.#closed; tries++) {
      let stopWatching = (): void => {};
      const client = connections.directClient({ application_name: "durable-tape listener", keepAlive: true });
      try {
        const { promise: broken, resolve } = Promise.withResolvers<void>();
        client.on("error", () => resolve());
        client.on("end", () => resolve());
        await client.connect();
        // A server that hangs, or that only turned read-only, breaks no connection.
        stopWatching = connections.directHosts?.onMove(resolve) ?? stopWatching;
        if (!warned) warnOfTransport(transportOf(client), listenUrl!, log);
        warned = true;
        this.#listener = client;
        if (this.#closed) throw new Error("closed while connecting");
        client.on("notification", ({ payload }) => this.#receive(payload));
        await client.query(`listen "${this.#channel}"`);
        tries = 1;
        wakes.emit({ of: "any" }); // hints may have been missed meanwhile
        await broken;
      } catch (error) {
        log("debug", "listen.failed", { ...errorFields(error) });
      }
      stopWatching();
      await ended(client, clock);
      if (!this.#closed) await clock.sleep(backoffMs(tries, { baseMs: 100, capMs: 5_000 }, random));
    }
  }

  /** Every user of the database can send a notification: an unknown message only means "check everything". */
  #receive(payload: string | undefined): void {
    const message = hintsIn(payload);
    if (message?.from === this.#sender) return;
    for (const wake of message?.hints ?? [{ of: "any" } as const]) {
      if (wake.of !== "any") this.#options.wakes.emit(wake);
      else this.#wakeAll();
    }
  }

  /** At most once per interval, however often it is received: each makes all listeners here query the store. */
  #wakeAll(): void {
    if (this.#wakingAll) {
      this.#wakeAllAgain = true;
      return;
    }
    this.#wakingAll = true;
    this.#options.wakes.emit({ of: "any" });
    this.#options.clock.after(anyMs, () => {
      this.#wakingAll = false;
      if (this.#wakeAllAgain) this.#options.wakes.emit({ of: "any" });
      this.#wakeAllAgain = false;
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    // A closing process has just released its leases: standbys must learn of it now, not at their next poll.
    if (this.#hints.size > 0) await this.#notify();
    await this.#listener?.end().catch(() => {});
  }
}

/** A server that hangs does not acknowledge the end of a connection. */
const endMs = 1_000;

function ended(client: pg.Client, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    clock.after(endMs, resolve);
    client.end().then(resolve, () => resolve());
  });
}

const notifyText = "select pg_notify($1, $2)";
/** A notification is a commit. This one has nothing that must be durable: a flush would only delay those that have. */
const hintText = "select pg_notify($1, $2), set_config('synchronous_commit', 'off', true)";

function hintsText(from: string, hints: readonly WakeHint[]): string {
  const text = JSON.stringify({ from, hints: hints.length > maxHints ? [{ of: "any" }] : hints });
  return text.length < 7_900 ? text : JSON.stringify({ from, hints: [{ of: "any" }] });
}

/** undefined: not a message of ours. */
function hintsIn(
  payload: string | undefined,
): { readonly from: string; readonly hints: readonly WakeHint[] } | undefined {
  let message: unknown;
  try {
    message = JSON.parse(payload ?? "");
  } catch {
    return undefined;
  }
  const { from, hints } = (message ?? {}) as { from?: unknown; hints?: unknown };
  if (!isName(from) || !Array.isArray(hints) || hints.length > maxHints) return undefined;
  const wakes = hints.map(parseHint);
  return wakes.every((wake) => wake !== undefined) ? { from, hints: wakes } : undefined;
}

function parseHint(hint: unknown): WakeHint | undefined {
  const { of, reactor, tenant, workflow, key, journal, journals } = (hint ?? {}) as Record<string, unknown>;
  if (of === "any") return { of };
  if (of === "reactor" && isName(reactor)) {
    return { of, reactor, ...(isName(tenant) && { tenant }), ...(isName(workflow) && { workflow }) };
  }
  if (of === "value" && isName(tenant) && isName(key)) return { of, tenant, key };
  if (of === "stream" && isName(tenant) && Array.isArray(journals) && journals.every(Number.isSafeInteger))
    return { of, tenant, journals };
  const known = (of === "journal" || of === "published") && isName(tenant) && Number.isSafeInteger(journal);
  return known ? { of, tenant, journal: journal as number } : undefined;
}

const isName = (value: unknown): value is string => typeof value === "string" && value.length <= maxNameChars;
