import { Agent } from "node:http";
import { openStore } from "../../src/host/open-store.ts";
import type { RouteName } from "../../src/protocol/contract.ts";
import type { Store } from "../../src/store/contract/store.ts";
import type { Patch } from "../../test/planted/bug.ts";
import { makeScene, tokenOf } from "../../test/server/scene.ts";
import { bootstrap } from "../../test/server/stage.ts";
import { Census } from "./census.ts";
import { Chance } from "./chance.ts";
import { compose, type Side } from "./compose.ts";
import { type Finding, type Hidden, type Judged, judge } from "./judge.ts";
import type { Memory } from "./orders.ts";
import { Pool } from "./pool.ts";
import { send } from "./send.ts";
import { sentText } from "./sent.ts";
import { startTarget, type Target } from "./server.ts";
import { pasteable, type Shot } from "./shot.ts";
import { guilty, smaller } from "./shrink.ts";
import { type Dump, difference, openTables, type Tables } from "./tables.ts";

export interface FuzzOptions {
  /** An empty store. */
  readonly store: string;
  readonly seed: string;
  /** Says when it is enough, before each round. */
  readonly enough: (rounds: number, findings: readonly Finding[]) => boolean;
  /** Weaknesses that are planted in the server. */
  readonly patches?: readonly Patch[];
  readonly progress?: (line: string) => void;
  readonly maxFindings?: number;
  /** Only these routes; absent: all. */
  readonly only?: readonly RouteName[];
  /** These, in this order, in place of drawn ones. */
  readonly replay?: readonly Shot[];
}

export interface FuzzReport {
  readonly findings: readonly Finding[];
  readonly census: Census;
  readonly memory: readonly Memory[];
  /** Stalls that did not come again when the same requests were sent again, in milliseconds beyond the machine's noise. */
  readonly passingStalls: readonly number[];
  readonly worstExcessMs: number;
}

/** Requests between two looks at the tables, and how many at a time. */
const roundShots = 48;
const atOnce = 8;
/** Rounds with the same two tenants: what they have stored stays small enough to be looked at as a whole. */
const episodeRounds = 30;
export const stallMs = 250;
/** Memory is looked at once in so many rounds: a collection stops the server for a moment. */
const memoryEvery = 10;

interface Episode {
  readonly sides: readonly [Side, Side];
  readonly hidden: readonly Hidden[];
  /** Names of one tenant; they are sent by the other only from the second half on, when they prove nothing any more. */
  readonly names: readonly Hidden[];
  /** Names that the server's own tenant has sent, which draws from both pools: its own feed may repeat them. */
  readonly sentByHome: Set<string>;
  readonly dumps: Map<string, Dump>;
  rounds: number;
  /** One of its tokens was revoked: most of what follows would be refused for that. */
  over: boolean;
}

interface Sent {
  readonly shot: Shot;
  readonly judged: Judged;
}

/**
 * Sends requests that are drawn from the contract to a real server, and judges each answer by the contract, and each
 * round of them by the tables: what was refused, or only read, has changed nothing, and nobody has changed anything of
 * another tenant's.
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
      await fuzzer.#play();
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

  async #play(): Promise<void> {
    const { enough, maxFindings = 10 } = this.#options;
    let episode = await this.#newEpisode();
    await this.#target.prober.report(); // what it saw of the start
    for (let rounds = 0; !enough(rounds, this.#findings) && this.#findings.length < maxFindings; rounds++) {
      if (episode.over || episode.rounds >= episodeRounds) episode = await this.#newEpisode();
      await this.#round(episode);
      episode.rounds++;
      if (!this.#target.alive()) return; // #round has said so
      if (rounds % memoryEvery === 0) {
        this.#memory.push(await this.#target.memory());
        await this.#target.prober.report();
      }
    }
  }

  /** Two new tenants, each with one thing of each kind. */
  async #newEpisode(): Promise<Episode> {
    const number = ++this.#episodes;
    // An order of the last episode may have set a default that leaves no room for a new tenant.
    const none = { runs: null, bytes: null, schedules: null, streams: null };
    await this.#store.intake.setQuota(undefined, none, { by: "the fuzzer", reason: "a new episode" });
    const hidden: Hidden[] = [
      { text: bootstrap.split(".")[1]!, what: "the secret of the bootstrap token" },
      { text: tokenOf("a", "admin").split(".")[1]!, what: "the secret of a token" },
    ];
    const names: Hidden[] = [];
    const sides: Side[] = [];
    for (const [k, word] of ["acme", "globex"].entries()) {
      const tenant = `${word}-${number}`;
      const secret = `hush-${word}-${this.#chance.digits(12)}`;
      const name = `${word}${number}x${this.#chance.digits(6)}`;
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
    const mode = chance.oneOf(["mixed", "one side", "spoilt", "one by one"] as const);
    const sides = chance.maybe(0.5) ? episode.sides : ([episode.sides[1], episode.sides[0]] as const);
    const drawn = () => compose({ chance, sides, crossing, only, mode });
    const alone = replay !== undefined || mode === "one by one";
    const shots = replay ?? Array.from({ length: alone ? roundShots / 4 : roundShots }, drawn);
    for (const group of alone ? shots.map((shot) => [shot]) : [shots]) {
      const sent = await this.#fire(group, episode);
      if (!this.#target.alive()) {
        const words = `the server ended: ${this.#target.log().slice(-2_000)}`;
        await this.#find({ rule: "crash", words, shots: group });
        return;
      }
      const findings = sent.flatMap(({ judged }) => judged.findings);
      for (const finding of findings) await this.#find(await this.#shrunk(finding, episode));
      if (findings.length > 0)
        await this.#rebased(episode); // they were sent again, and may have done something then
      else await this.#changed(episode, sent);
    }
    await this.#stalled(episode, shots);
  }

  /** Sends them, some at a time, and waits until the server has done with all of them. */
  async #fire(shots: readonly Shot[], episode: Episode, together = atOnce): Promise<Sent[]> {
    const sent: Sent[] = new Array(shots.length);
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
    return sent.filter((one) => one !== undefined);
  }

  #learn(episode: Episode, { sender, body }: Shot, { json }: Judged): void {
    const pool = episode.sides.find(({ tenant }) => tenant === sender.tenant)?.pool;
    if (pool === undefined || json === undefined) return;
    pool.take(json);
    // An append's answer says where its journal ends, and only its request which journal that is.
    const { verdicts } = json as { verdicts?: { head?: number }[] };
    if (!Array.isArray(verdicts) || body === undefined || !("text" in body)) return;
    try {
      const { batch = [] } = JSON.parse(body.text) as { batch?: { fence?: { journal?: number } }[] };
      for (const [k, { head }] of verdicts.entries()) {
        const journal = batch[k]?.fence?.journal;
        if (head !== undefined && journal !== undefined) pool.sawHead(journal, head);
      }
    } catch {
      // what was refused as JSON has no verdicts
    }
  }

  /** The server answered another process later than the machine explains: once more, and then which request it was. */
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
    const found = (await stalls(shots)) ? await guilty(shots, stalls) : [];
    await this.#rebased(episode);
    if (found.length === 0) {
      this.#stalls.push(Math.round(first));
      this.#options.progress?.(`a stall of ${Math.round(first)} ms did not come again`);
      return;
    }
    await this.#find({ rule: "stall", words: `${Math.round(first)} ms beyond the machine's noise`, shots: found });
  }

  /** Whether somebody has changed what is not theirs to change. */
  async #changed(episode: Episode, sent: readonly Sent[]): Promise<void> {
    for (const { tenant } of episode.sides) {
      const before = episode.dumps.get(tenant)!;
      const after = await this.#tables.dump(tenant);
      episode.dumps.set(tenant, after);
      const excused = sent.some((one) => mayChange(one, tenant));
      this.#census.looked(!excused);
      if (excused) continue;
      const rows = difference(before, after);
      if (rows.length > 0) await this.#findChange(episode, tenant, rows, sent);
    }
  }

  async #findChange(episode: Episode, tenant: string, rows: readonly string[], sent: readonly Sent[]): Promise<void> {
    const words = `the tables of ${tenant} have changed: ${rows.slice(0, 6).join("\n    ").slice(0, 2_000)}`;
    const changes = async (some: readonly Shot[]): Promise<boolean> => {
      const before = await this.#tables.dump(tenant);
      const again = await this.#fire(some, episode, 1);
      if (again.some((one) => mayChange(one, tenant))) return false;
      return difference(before, await this.#tables.dump(tenant)).length > 0;
    };
    const shots = sent.map(({ shot }) => shot);
    const found = await guilty(shots, changes);
    await this.#rebased(episode);
    await this.#find({ rule: "changed", words, shots: found.length > 0 ? found : shots });
  }

  async #rebased({ dumps }: Episode): Promise<void> {
    for (const tenant of dumps.keys()) dumps.set(tenant, await this.#tables.dump(tenant));
  }

  async #shrunk(finding: Finding, episode: Episode): Promise<Finding> {
    const key = keyOf(finding);
    if (this.#known.has(key) || finding.shots.length !== 1 || finding.rule === "no answer") return finding;
    const [shot] = finding.shots;
    const same = async (one: Shot): Promise<boolean> => {
      const [again] = await this.#fire([one], episode, 1);
      return again?.judged.findings.some(({ rule }) => rule === finding.rule) ?? false;
    };
    const words = finding.rule === "server error" ? `${finding.words}\n    ${this.#failure()}` : finding.words;
    return { ...finding, words, shots: [await smaller(shot!, same)] };
  }

  /** What the server's own log says of the last failure. */
  #failure(): string {
    const lines = this.#target.log().split("\n");
    return lines.findLast((line) => line.includes('"server.failed"') || line.includes('"fault":"store"')) ?? "";
  }

  async #find(finding: Finding): Promise<void> {
    const key = keyOf(finding);
    if (this.#known.has(key)) return;
    this.#known.add(key);
    this.#findings.push(finding);
    // With its request, and at once: a run that is cut short has said all that it found.
    const [shot] = finding.shots;
    const request = shot === undefined ? "" : `\n    ${pasteable(shot, "http://127.0.0.1:7878")}`;
    this.#options.progress?.(`FOUND ${finding.rule}: ${finding.words}${request}`);
  }
}

/** One finding of each kind for each route and cause is enough. */
function keyOf({ rule, words, shots }: Finding): string {
  const plain = words.replaceAll(/[\d"]+/g, "").slice(0, 60);
  const [{ route, raw } = {}] = shots;
  return `${rule} ${shots.length === 1 && raw === undefined ? route : ""} ${plain}`;
}

const isRevoked = ({ sender: { role }, raw }: Shot): boolean =>
  role !== "none" && role !== "forged" && raw === undefined;

/** A call of this tenant that was carried out, or of which nobody knows whether it was; or the operator's, of all. */
function mayChange({ shot: { sender }, judged: { outcome } }: Sent, tenant: string): boolean {
  if (outcome !== "accepted" && outcome !== "unknown") return false;
  return sender.tenant === tenant || sender.tenant === "home";
}

/** What the server's own tenant must not see: every secret, and each name until it has sent that name itself. */
function hiddenFromHome({ names, sentByHome }: Episode, shot: Shot, hidden: readonly Hidden[]): readonly Hidden[] {
  const sent = sentText(shot);
  for (const { text } of names) if (sent.includes(text)) sentByHome.add(text);
  return hidden.filter(({ text }) => !sentByHome.has(text));
}
