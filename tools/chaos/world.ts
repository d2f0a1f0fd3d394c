import { appendFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { systemClock } from "../../src/base/clock.ts";
import { type Random, seededRandom } from "../../src/base/random.ts";

/** What a request asks for. `n` tells the acts of one run apart, in the order in which it decides them. */
export interface Ask {
  readonly run: string;
  readonly what: string;
  readonly n: number;
  /** A timer of this length is set as soon as this is answered. */
  readonly timerMs?: number;
}

/** One request that was carried out, in the order in which the world did it. */
export interface Deed extends Ask {
  readonly name: string;
  readonly key: string;
  readonly token: string;
  readonly worker: string;
  /** By the world's own clock. */
  readonly at: number;
}

/** An act of a singleton's holder that its guard let pass. */
export interface Lead {
  readonly token: string;
  readonly worker: string;
  readonly at: number;
}

export type Stage = "before" | "after";

/** A request that is being carried out, seen just before and just after the deed. */
export interface Scene {
  readonly stage: Stage;
  readonly worker: string;
  readonly run: string;
}

/** How the world treats a request, chosen by its key: half of them are served plainly. */
type Whim = "plain" | "slow" | "late" | "cut" | "lost" | "busy";
const whims: readonly Whim[] = ["plain", "plain", "plain", "plain", "plain", "slow", "late", "cut", "lost", "busy"];

/**
 * The other side: a server in a process of its own, which nobody kills, with its own clock and its own ledger. "Once",
 * "in order" and "not early" are judged here, never from the journal.
 *
 *   /do/<name>    does it, every time it is asked
 *   /once/<name>  does it once for a key
 *   /no/<name>    refuses for good
 *   /read/<name>  changes nothing
 *   /try/<name>   fails the first time
 *   /look/<name>  says whether it was done for this key, and from then on refuses lower tokens
 *   /lead/<name>  an act of the holder of that lease; refused under a lower token than it has seen
 *
 * It compares tokens within one key: whoever comes with a lower one than it has seen is refused. That is what makes "not
 * found" final, whatever a stopped sender does when it wakes up.
 */
export class World {
  readonly deeds: Deed[] = [];
  /** Requests refused for their token. */
  stale = 0;
  /** Acts of singletons that went through, and how many did not. */
  readonly leads: Lead[] = [];
  staleLeads = 0;
  /** Who came with which token for which key: one token is one owner's for ever. */
  readonly owners = new Map<string, Set<string>>();
  /** How often each whim was played. */
  readonly played: Record<string, number> = {};
  /** When timers fall due, by the world's clock: a little later than that, because they were set a little later. */
  readonly due: number[] = [];
  /** Called when a request is about to be carried out, and when it has been. */
  onScene: (scene: Scene) => void = () => {};
  readonly #file: string;
  readonly #random: Random;
  readonly #server: Server;
  readonly #highest = new Map<string, bigint>();
  readonly #seen = new Set<string>();
  readonly #done = new Map<string, Deed>();
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

  /** Requests of this worker that it has not been answered yet. */
  openOf(worker: string): number {
    return this.#open.get(worker) ?? 0;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = "";
    for await (const chunk of request) text += chunk;
    const ask = JSON.parse(text) as Ask;
    const [, verb = "", name = ""] = request.url!.split("/");
    const key = String(request.headers["idempotency-key"]);
    const token = BigInt(String(request.headers["tape-fencing-token"]));
    const worker = String(request.headers["x-worker"]);
    this.#count(worker, 1);
    response.once("close", () => this.#count(worker, -1));
    const place = `${name} ${key}`;
    const answer = (status: number, body: unknown = null): void => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(body));
    };
    if (verb === "no") return answer(422, "never");
    if (verb === "read") return answer(200, `rate ${ask.n}`);
    if (verb === "try") {
      const tried = this.#seen.has(place);
      this.#seen.add(place);
      return answer(tried ? 200 : 500);
    }
    this.#noteOwner(`${name} ${key} ${token}`, worker);
    if (token < (this.#highest.get(place) ?? 0n)) {
      if (verb === "lead") this.staleLeads++;
      else this.stale++;
      return answer(412, "a higher token was here");
    }
    this.#highest.set(place, token);
    if (verb === "lead") {
      this.leads.push({ token: String(token), worker, at: systemClock.wall() });
      return answer(200);
    }
    if (verb === "look") return answer(this.#done.has(place) ? 200 : 404, this.#done.get(place)?.what);
    const whim = this.#whimFor(place);
    if (whim === "busy") return answer(429);
    if (whim === "slow") await systemClock.sleep(50 + this.#random.int(250));
    this.onScene({ stage: "before", worker, run: ask.run });
    if (whim === "lost") return void request.socket.destroy();
    // While it was slow, somebody may have looked: what was "not found" must stay so.
    if (token < (this.#highest.get(place) ?? 0n)) return answer(412, "a higher token was here");
    if (verb === "do" || !this.#done.has(place)) {
      const deed: Deed = { ...ask, name, key, token: String(token), worker, at: systemClock.wall() };
      this.deeds.push(deed);
      this.#done.set(place, deed);
      if (ask.timerMs !== undefined) this.due.push(deed.at + ask.timerMs);
      appendFileSync(this.#file, `${JSON.stringify(deed)}\n`);
    }
    this.onScene({ stage: "after", worker, run: ask.run });
    if (whim === "late") await systemClock.sleep(50 + this.#random.int(250));
    if (whim === "cut") return void request.socket.destroy();
    return answer(200, ask.what);
  }

  /** Only the first request of a key meets a whim: the world is moody, not broken. */
  #whimFor(place: string): Whim {
    const whim = this.#seen.has(place) ? "plain" : whims[this.#random.int(whims.length)]!;
    this.#seen.add(place);
    this.played[whim] = (this.played[whim] ?? 0) + 1;
    return whim;
  }

  #noteOwner(term: string, worker: string): void {
    const owners = this.owners.get(term) ?? new Set();
    this.owners.set(term, owners.add(worker));
  }

  #count(worker: string, by: number): void {
    this.#open.set(worker, (this.#open.get(worker) ?? 0) + by);
  }
}
