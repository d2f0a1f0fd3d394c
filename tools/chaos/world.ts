import { appendFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { systemClock } from "../../src/base/clock.ts";
import { type Random, seededRandom } from "../../src/base/random.ts";

/** Arguments of an effect, and body of its request. `n` numbers the effects of one run, in the order of its decisions. */
export interface EffectArgs {
  readonly run: string;
  readonly what: string;
  readonly n: number;
  /** The run sets a timer of this length as soon as it has the response. */
  readonly timerMs?: number;
}

/** One request that the world carried out, in the world's order. */
export interface WorldRequest extends EffectArgs {
  readonly name: string;
  readonly key: string;
  readonly token: string;
  readonly worker: string;
  /** By the world's own clock. */
  readonly at: number;
}

/** A request of a singleton's holder that the world's guard accepted. */
export interface SingletonRequest {
  readonly token: string;
  readonly worker: string;
  readonly at: number;
}

export type Stage = "before" | "after";

/** A request just before or just after the world carries it out. */
export interface RequestMoment {
  readonly stage: Stage;
  readonly worker: string;
  readonly run: string;
}

/** How the world treats the first request of a key: half of them are served plainly. */
type Behaviour = "plain" | "slow" | "late" | "cut" | "lost" | "busy";
const behaviours: readonly Behaviour[] = [
  "plain",
  "plain",
  "plain",
  "plain",
  "plain",
  "slow",
  "late",
  "cut",
  "lost",
  "busy",
];

/**
 * The upstream: an HTTP server in a process that no fault kills, with its own clock and ledger. "Once", "in order" and
 * "not early" are judged by this ledger, never by the journal.
 *
 *   /do/<name>         carries out every request
 *   /once/<name>       carries out one request per key
 *   /no/<name>         rejects permanently
 *   /read/<name>       changes nothing
 *   /try/<name>        fails the first time
 *   /observe/<name>    returns whether the key was carried out, and rejects lower tokens from then on
 *   /singleton/<name>  a request of the lease's holder; rejected under a lower token than the highest so far
 *
 * It compares tokens within one key and rejects a token below the highest so far. That makes "not found" final, whatever
 * a stopped sender does when it wakes up.
 */
export class World {
  readonly requests: WorldRequest[] = [];
  /** Number of requests that were rejected for their token. */
  stale = 0;
  /** Accepted requests of singletons, and the number of rejected ones. */
  readonly singletonRequests: SingletonRequest[] = [];
  staleSingletonRequests = 0;
  /** Workers that used each token of each key: a token belongs to one owner forever. */
  readonly owners = new Map<string, Set<string>>();
  /** How often each behaviour was chosen. */
  readonly behaviourCounts: Record<string, number> = {};
  /** Earliest due times of timers, by the world's clock. Timers are set a little later, so they fall due a little later. */
  readonly due: number[] = [];
  /** Called just before and just after a request is carried out. */
  onRequest: (moment: RequestMoment) => void = () => {};
  readonly #file: string;
  readonly #random: Random;
  readonly #server: Server;
  readonly #highest = new Map<string, bigint>();
  readonly #seen = new Set<string>();
  readonly #done = new Map<string, WorldRequest>();
  readonly #open = new Map<string, number>();

  constructor(file: string, seed: string) {
    this.#file = file;
    this.#random = seededRandom(`${seed} world`);
    this.#server = createServer((request, response) => {
      void this.#serve(request, response).catch(() => request.socket.destroy());
    });
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as { port: number }).port}/`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** Number of this worker's requests without a response so far. */
  openOf(worker: string): number {
    return this.#open.get(worker) ?? 0;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = "";
    for await (const chunk of request) text += chunk;
    const args = JSON.parse(text) as EffectArgs;
    const [, verb = "", name = ""] = request.url!.split("/");
    const key = String(request.headers["idempotency-key"]);
    const token = BigInt(String(request.headers["tape-fencing-token"]));
    const worker = String(request.headers["x-worker"]);
    this.#count(worker, 1);
    response.once("close", () => this.#count(worker, -1));
    const place = `${name} ${key}`;
    const respond = (status: number, body: unknown = null): void => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(body));
    };
    if (verb === "no") return respond(422, "never");
    if (verb === "read") return respond(200, `rate ${args.n}`);
    if (verb === "try") {
      const repeated = this.#seen.has(place);
      this.#seen.add(place);
      return respond(repeated ? 200 : 500);
    }
    this.#noteOwner(`${name} ${key} ${token}`, worker);
    if (token < (this.#highest.get(place) ?? 0n)) {
      if (verb === "singleton") this.staleSingletonRequests++;
      else this.stale++;
      return respond(412, "a higher token was used");
    }
    this.#highest.set(place, token);
    if (verb === "singleton") {
      this.singletonRequests.push({ token: String(token), worker, at: systemClock.wall() });
      return respond(200);
    }
    if (verb === "observe") return respond(this.#done.has(place) ? 200 : 404, this.#done.get(place)?.what);
    const behaviour = this.#behaviourFor(place);
    if (behaviour === "busy") return respond(429);
    if (behaviour === "slow") await systemClock.sleep(50 + this.#random.int(250));
    this.onRequest({ stage: "before", worker, run: args.run });
    if (behaviour === "lost") return void request.socket.destroy();
    // An observation may have arrived in the meantime: what was "not found" must stay so.
    if (token < (this.#highest.get(place) ?? 0n)) return respond(412, "a higher token was used");
    if (verb === "do" || !this.#done.has(place)) {
      const executed: WorldRequest = { ...args, name, key, token: String(token), worker, at: systemClock.wall() };
      this.requests.push(executed);
      this.#done.set(place, executed);
      if (args.timerMs !== undefined) this.due.push(executed.at + args.timerMs);
      appendFileSync(this.#file, `${JSON.stringify(executed)}\n`);
    }
    this.onRequest({ stage: "after", worker, run: args.run });
    if (behaviour === "late") await systemClock.sleep(50 + this.#random.int(250));
    if (behaviour === "cut") return void request.socket.destroy();
    return respond(200, args.what);
  }

  /** Only the first request of a key can fail at random, so that every request succeeds in the end. */
  #behaviourFor(place: string): Behaviour {
    const behaviour = this.#seen.has(place) ? "plain" : behaviours[this.#random.int(behaviours.length)]!;
    this.#seen.add(place);
    this.behaviourCounts[behaviour] = (this.behaviourCounts[behaviour] ?? 0) + 1;
    return behaviour;
  }

  #noteOwner(term: string, worker: string): void {
    const owners = this.owners.get(term) ?? new Set();
    this.owners.set(term, owners.add(worker));
  }

  #count(worker: string, by: number): void {
    this.#open.set(worker, (this.#open.get(worker) ?? 0) + by);
  }
}
