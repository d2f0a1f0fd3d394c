import { Agent } from "node:http";
import { openStore } from "../../src/host/open-store.ts";
import type { RouteName } from "../../src/protocol/contract.ts";
import type { Store } from "../../src/store/contract/store.ts";
import type { Patch } from "../../test/planted/bug.ts";
import { makeScene, tokenOf } from "../../test/server/scene.ts";
import { bootstrap } from "../../test/server/stage.ts";
import { Census } from "./census.ts";
import { Chance } from "./chance.ts";
import { compose, type TenantSide } from "./compose.ts";
import { type Finding, type Hidden, type JudgedReply, judge } from "./judge.ts";
import type { Memory } from "./memory.ts";
import { Pool } from "./pool.ts";
import { send } from "./send.ts";
import { sentText } from "./sent-text.ts";
import { startTarget, type Target } from "./server.ts";
import { pasteable, type Shot } from "./shot.ts";
import { fewest, smaller } from "./shrink.ts";
import { type Dump, difference, openTables, type Tables } from "./tables.ts";

export interface FuzzOptions {
  /** An empty store. */
  readonly store: string;
  readonly seed: string;
  /** Called before each round; true ends the fuzz run. */
  readonly enough: (rounds: number, findings: readonly Finding[], census: Census) => boolean;
  /** Weaknesses to plant in the server. */
  readonly patches?: readonly Patch[];
  readonly progress?: (line: string) => void;
  readonly maxFindings?: number;
  /** Only these routes. Default: all. */
  readonly only?: readonly RouteName[];
  /** Sent in this order instead of drawn requests. */
  readonly replay?: readonly Shot[];
}

export interface FuzzReport {
  readonly findings: readonly Finding[];
  readonly census: Census;
  readonly memory: readonly Memory[];
  /** Stalls that the same requests did not reproduce, in milliseconds beyond the machine's noise. */
  readonly passingStalls: readonly number[];
  readonly worstExcessMs: number;
}

/** Requests between two checks of the tables, and how many at a time. */
const roundShots = 48;
const atOnce = 8;
/** Rounds with the same two tenants: their data stays small enough to be compared as a whole. */
const episodeRounds = 30;
export const stallMs = 250;
/** Memory is measured every tenth round, because a collection stops the server for a moment. */
const memoryEveryRounds = 10;

interface Episode {
  readonly sides: readonly [TenantSide, TenantSide];
  readonly hidden: readonly Hidden[];
  /** Names of one tenant. From the second half on the other tenant sends them too; then they prove no leak any more. */
  readonly names: readonly Hidden[];
  /** Names that the server's own tenant has sent. It draws from both pools, so its feed may repeat them. */
  readonly sentByHome: Set<string>;
  readonly dumps: Map<string, Dump>;
  rounds: number;
  /** One of its tokens was revoked, so most later requests would be rejected. */
  over: boolean;
}

interface JudgedCall {
  readonly shot: Shot;
  readonly judged: JudgedReply;
}

/**
 * Sends requests that are drawn from the contract to a real server. Judges each response by the contract, and each round
 * by the tables: rejected calls and reads change nothing, and no tenant changes rows of another.
 */
export class Fuzzer {
  readonly #options: FuzzOptions;
  readonly #chance: Chance;
  readonly #findings: Finding[] = [];
  readonly #known = new Set<string>();
  readonly #census = new Census();
  readonly #memory: Memory[] = [];
  readonly #stalls: number[] = [];
  #worstExcess = 0;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: atOnce });
  readonly #store: Store;
  readonly #tables: Tables;
  readonly #target: Target;
  #episodes = 0;

  private constructor(options: FuzzOptions, store: Store, tables: Tables, target: Target) {
    this.#options = options;
    this.#chance = new Chance(options.seed);
    this.#store = store;
    this.#tables = tables;
    this.#target = target;
  }

  static async run(options: FuzzOptions): Promise<FuzzReport> {
    const store = await openStore(options.store);
    const tables = await openTables(options.store);
    const target = await startTarget(options.store, options.patches);
    const fuzzer = new Fuzzer(options, store, tables, target);
    try {
      await fuzzer.#runRounds();
      return fuzzer.#report();
    } finally {
      fuzzer.#agent.destroy();
      await target.close();
      await tables.close();
      await store.close();
    }
  }

  #report(): FuzzReport {
    return {
      findings: this.#findings,
      census: this.#census,
      memory: this.#memory,
      passingStalls: this.#stalls,
      worstExcessMs: this.#worstExcess,
    };
  }

  async #runRounds(): Promise<void> {
    const { enough, maxFindings = 10 } = this.#options;
    let episode = await this.#newEpisode();
    await this.#target.prober.report(); // discards what it measured during the start
    for (
      let rounds = 0;
      !enough(rounds, this.#findings, this.#census) && this.#findings.length < maxFindings;
      rounds++
    ) {
      if (episode.over || episode.rounds >= episodeRounds) episode = await this.#newEpisode();
      await this.#round(episode);
      episode.rounds++;
      if (!this.#target.alive()) return; // #round has reported it
      if (rounds % memoryEveryRounds === 0) {
        this.#memory.push(await this.#target.memory());
        await this.#target.prober.report();
      }
    }
  }

  /** Two new tenants, each with one object of each kind. */
  async #newEpisode(): Promise<Episode> {
    const number = ++this.#episodes;
    // A call of the last episode may have set a default quota that leaves no room for a new tenant.
    const none = { runs: null, bytes: null, schedules: null, streams: null };
    await this.#store.intake.setQuota(undefined, none, { by: "the fuzzer", reason: "a new episode" });
    const hidden: Hidden[] = [
      { text: bootstrap.split(".")[1]!, what: "the secret of the bootstrap token" },
      { text: tokenOf("a", "admin").split(".")[1]!, what: "the secret of a token" },
    ];
    const names: Hidden[] = [];
    const sides: TenantSide[] = [];
    for (const [k, prefix] of ["acme", "globex"].entries()) {
      const tenant = `${prefix}-${number}`;
      const secret = `hush-${prefix}-${this.#chance.digits(12)}`;
      const name = `${prefix}${number}x${this.#chance.digits(6)}`;
      const nonce = BigInt(`7${k}${this.#chance.digits(14)}`);
      const scene = await makeScene(this.#store, tenant, { name, secret, nonce });
      hidden.push({ text: secret, what: `a value of ${tenant}`, of: tenant });
      for (let n = 0n; n < 4n; n++) hidden.push({ text: String(nonce + n), what: "the nonce of a lease" });
      names.push({ text: name, what: `a name of ${tenant}`, of: tenant });
      const pool = new Pool("hush-");
      pool.take(scene);
      pool.take({ id: scene.run, name: scene.lease, effect: { pos: 0, sub: 0 } });
      for (const id of [scene.idle, scene.stuck, scene.inDoubt]) pool.take({ id });
      for (const id of [scene.schedule, scene.token]) pool.take({ id });
      sides.push({ tenant, pool, scene });
    }
    const dumps = new Map<string, Dump>();
    for (const { tenant } of sides) dumps.set(tenant, await this.#tables.dump(tenant));
    return { sides: [sides[0]!, sides[1]!], hidden, names, sentByHome: new Set(), dumps, rounds: 0, over: false };
  }

  async #round(episode: Episode): Promise<void> {
    const crossing = episode.rounds >= episodeRounds / 2;
    const { replay, only } = this.#options;
    const chance = this.#chance;
    const mode = chance.oneOf(["mixed", "one side", "broken", "one by one"] as const);
    const sides = chance.maybe(0.5) ? episode.sides : ([episode.sides[1], episode.sides[0]] as const);
    const drawn = () => compose({ chance, sides, crossing, only, mode });
    const alone = replay !== undefined || mode === "one by one";
    const shots = replay ?? Array.from({ length: alone ? roundShots / 4 : roundShots }, drawn);
    for (const group of alone ? shots.map((shot) => [shot]) : [shots]) {
      const sent = await this.#fire(group, episode);
      if (!this.#target.alive()) {
        const message = `the server ended: ${this.#target.log().slice(-2_000)}`;
        await this.#find({ rule: "crash", message, shots: group });
        return;
      }
      const findings = sent.flatMap(({ judged }) => judged.findings);
      for (const finding of findings) await this.#find(await this.#shrunk(finding, episode));
      if (findings.length > 0)
        await this.#rebased(episode); // shrinking repeated the requests, which may have changed something
      else await this.#changed(episode, sent);
    }
    await this.#stalled(episode, shots);
  }

  /** Sends the requests, some at a time, and waits until the server has finished all of them. */
  async #fire(shots: readonly Shot[], episode: Episode, together = atOnce): Promise<JudgedCall[]> {
    const sent: JudgedCall[] = new Array(shots.length);
    const hidden = episode.rounds >= episodeRounds / 2 ? episode.hidden : [...episode.hidden, ...episode.names];
    let next = 0;
    const lane = async (): Promise<void> => {
      for (let k = next++; k < shots.length; k = next++) {
        const shot = shots[k]!;
        const secrets = shot.sender.tenant === "home" ? hiddenFromHome(episode, shot, hidden) : hidden;
        const judged = judge(shot, await send(shot, this.#target.port, this.#agent), secrets);
        sent[k] = { shot, judged };
        this.#census.count(shot, judged);
        if (judged.code === "TAPE_UNAUTHENTICATED" && isRevoked(shot)) episode.over = true;
        this.#learn(episode, shot, judged);
        if (!this.#target.alive()) return;
      }
    };
    await Promise.all(Array.from({ length: together }, lane));
    if (this.#target.alive()) await this.#target.settled().catch(() => {});
    return sent.filter((call) => call !== undefined);
  }

  #learn(episode: Episode, { sender, body }: Shot, { json }: JudgedReply): void {
    const pool = episode.sides.find(({ tenant }) => tenant === sender.tenant)?.pool;
    if (pool === undefined || json === undefined) return;
    pool.take(json);
    // An append's response has the head of the journal, and only its request names the journal.
    const { verdicts } = json as { verdicts?: { head?: number }[] };
    if (!Array.isArray(verdicts) || body === undefined || !("text" in body)) return;
    try {
      const { batch = [] } = JSON.parse(body.text) as { batch?: { fence?: { journal?: number } }[] };
      for (const [k, { head }] of verdicts.entries()) {
        const journal = batch[k]?.fence?.journal;
        if (head !== undefined && journal !== undefined) pool.sawHead(journal, head);
      }
    } catch {
      // a body that is no JSON has no verdicts
    }
  }

  /** Checks whether the prober's response was late beyond the machine's noise. If so, repeats the round and finds the request. */
  async #stalled(episode: Episode, shots: readonly Shot[]): Promise<void> {
    const excess = async (): Promise<number> => (await this.#target.prober.report()).excess;
    const first = await excess();
    this.#worstExcess = Math.max(this.#worstExcess, first);
    if (first <= stallMs) return;
    const stalls = async (some: readonly Shot[]): Promise<boolean> => {
      await excess();
      await this.#fire(some, episode);
      return (await excess()) > stallMs;
    };
    const found = (await stalls(shots)) ? await fewest(shots, stalls) : [];
    await this.#rebased(episode);
    if (found.length === 0) {
      this.#stalls.push(Math.round(first));
      this.#options.progress?.(`a stall of ${Math.round(first)} ms was not reproduced`);
      return;
    }
    await this.#find({ rule: "stall", message: `${Math.round(first)} ms beyond the machine's noise`, shots: found });
  }

  /** Finds changes that no accepted call explains. */
  async #changed(episode: Episode, sent: readonly JudgedCall[]): Promise<void> {
    for (const { tenant } of episode.sides) {
      const before = episode.dumps.get(tenant)!;
      const after = await this.#tables.dump(tenant);
      episode.dumps.set(tenant, after);
      const excused = sent.some((call) => mayChange(call, tenant));
      this.#census.countTableCheck(!excused);
      if (excused) continue;
      const rows = difference(before, after);
      if (rows.length > 0) await this.#findChange(episode, tenant, rows, sent);
    }
  }

  async #findChange(
    episode: Episode,
    tenant: string,
    rows: readonly string[],
    sent: readonly JudgedCall[],
  ): Promise<void> {
    const message = `the tables of ${tenant} have changed: ${rows.slice(0, 6).join("\n    ").slice(0, 2_000)}`;
    const changes = async (some: readonly Shot[]): Promise<boolean> => {
      const before = await this.#tables.dump(tenant);
      const repeated = await this.#fire(some, episode, 1);
      if (repeated.some((call) => mayChange(call, tenant))) return false;
      return difference(before, await this.#tables.dump(tenant)).length > 0;
    };
    const shots = sent.map(({ shot }) => shot);
    const found = await fewest(shots, changes);
    await this.#rebased(episode);
    await this.#find({ rule: "changed", message, shots: found.length > 0 ? found : shots });
  }

  async #rebased({ dumps }: Episode): Promise<void> {
    for (const tenant of dumps.keys()) dumps.set(tenant, await this.#tables.dump(tenant));
  }

  async #shrunk(finding: Finding, episode: Episode): Promise<Finding> {
    const key = keyOf(finding);
    if (this.#known.has(key) || finding.shots.length !== 1 || finding.rule === "no response") return finding;
    const [shot] = finding.shots;
    const same = async (candidate: Shot): Promise<boolean> => {
      const [repeated] = await this.#fire([candidate], episode, 1);
      return repeated?.judged.findings.some(({ rule }) => rule === finding.rule) ?? false;
    };
    const message = finding.rule === "server error" ? `${finding.message}\n    ${this.#failure()}` : finding.message;
    return { ...finding, message, shots: [await smaller(shot!, same)] };
  }

  /** The last failure in the server's log. */
  #failure(): string {
    const lines = this.#target.log().split("\n");
    return lines.findLast((line) => line.includes('"server.failed"') || line.includes('"fault":"store"')) ?? "";
  }

  async #find(finding: Finding): Promise<void> {
    const key = keyOf(finding);
    if (this.#known.has(key)) return;
    this.#known.add(key);
    this.#findings.push(finding);
    // Printed at once with its request, so that an interrupted fuzz run has shown all its findings.
    const [shot] = finding.shots;
    const request = shot === undefined ? "" : `\n    ${pasteable(shot, "http://127.0.0.1:7878")}`;
    this.#options.progress?.(`FOUND ${finding.rule}: ${finding.message}${request}`);
  }
}

/** One finding of each kind for each route and cause is enough. */
function keyOf({ rule, message, shots }: Finding): string {
  const plain = message.replaceAll(/[\d"]+/g, "").slice(0, 60);
  const [{ route, raw } = {}] = shots;
  return `${rule} ${shots.length === 1 && raw === undefined ? route : ""} ${plain}`;
}

const isRevoked = ({ sender: { role }, raw }: Shot): boolean =>
  role !== "none" && role !== "forged" && raw === undefined;

/** Whether a call may have changed the tenant's rows: it was carried out or may have been, by the tenant or by the server's own. */
function mayChange({ shot: { sender }, judged: { outcome } }: JudgedCall, tenant: string): boolean {
  if (outcome !== "accepted" && outcome !== "unknown") return false;
  return sender.tenant === tenant || sender.tenant === "home";
}

/** Hidden texts for the server's own tenant: every secret, and each name until the tenant has sent that name. */
function hiddenFromHome({ names, sentByHome }: Episode, shot: Shot, hidden: readonly Hidden[]): readonly Hidden[] {
  const sent = sentText(shot);
  for (const { text } of names) if (sent.includes(text)) sentByHome.add(text);
  return hidden.filter(({ text }) => !sentByHome.has(text));
}
