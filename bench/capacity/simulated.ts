import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { seededRandom } from "../../src/base/random.ts";
import { openStore } from "../../src/host/open-store.ts";
import { Tape } from "../../src/host/tape.ts";
import { createRunner, type Runner, workflow } from "../../src/sdk/workflow.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { type Boundary, TestProcess } from "../../testkit/kit/process.ts";
import { VirtualTime } from "../../testkit/kit/virtual-time.ts";
import type { Demand, Fleet } from "./model.ts";

export interface FleetCounts extends Demand {
  /** Timers that fell due in the window and whose runs did not continue in it. */
  readonly late: number;
  readonly bytesPerWaitingRun: number;
}

const template = "waits-template";
/** Between opening the processes and the first copied timer. */
const warmUpMs = 60_000;

/**
 * The engine on a SQLite file in virtual time: real processes of Tape, real statements, no sleeping. The store has
 * `fleet.waiting` runs, copies of one that the engine parked in that store, whose timers fall due evenly. What the
 * store is asked for within `seconds` is counted.
 */
export async function simulate(fleet: Fleet, seconds: number): Promise<FleetCounts> {
  const folder = mkdtempSync(join(tmpdir(), "tape-capacity-"));
  try {
    return await new Simulation(fleet, join(folder, "fleet.db")).run(seconds);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

class Simulation {
  readonly #fleet: Fleet;
  readonly #file: string;
  readonly #time = new VirtualTime();
  readonly #runner: Runner;
  readonly #waits;
  readonly #works;
  #appends = 0;
  #renewals = 0;
  #renewCalls = 0;

  constructor(fleet: Fleet, file: string) {
    this.#fleet = fleet;
    this.#file = file;
    this.#waits = workflow("waits", async (tape, interval: number) => {
      for (;;) {
        await tape.sleep(interval);
        for (let k = 0; k < fleet.stepsPerWake; k++) await tape.step(`step ${k}`, () => ({ ok: true }));
      }
    });
    this.#works = workflow("works", async (tape, ms: number) => tape.step("long", () => this.#time.sleep(ms)));
    this.#runner = createRunner({ workflows: [this.#waits, this.#works] });
  }

  async run(seconds: number): Promise<FleetCounts> {
    const { waiting, held, processes, intervalSeconds } = this.#fleet;
    await this.#parkOne();
    this.#copy();
    const bytes = statSync(this.#file).size;
    const store = await this.#time.during(this.#open("the fleet"));
    const tapes: Tape[] = [];
    for (let k = 0; k < processes; k++) tapes.push(await this.#process(store, k));
    for (let k = 0; k < held; k++)
      await this.#time.during(tapes[k % processes]!.start(this.#works, warmUpMs * 2 + seconds * 1_000));
    await this.#time.elapse(warmUpMs);
    const before = this.#written();
    this.#appends = this.#renewals = this.#renewCalls = 0;
    await this.#time.elapse(seconds * 1_000);
    const after = this.#written();
    const due = Math.round((waiting * seconds) / intervalSeconds);
    const wakes = after.slept - before.slept;
    const counted = {
      wakes: wakes / seconds,
      records: (after.records - before.records) / seconds,
      appends: this.#appends / seconds,
      renewals: this.#renewals / seconds,
      renewCalls: this.#renewCalls / seconds,
      late: Math.max(0, due - wakes),
      bytesPerWaitingRun: bytes / waiting,
    };
    // Draining takes virtual time, in which runs continue to wake.
    for (const tape of tapes) await this.#time.during(tape.close());
    await this.#time.during(store.close());
    return counted;
  }

  #open(seed: string): Promise<Store> {
    return openStore(`sqlite:${this.#file}`, { clock: this.#time, random: seededRandom(seed) });
  }

  async #parkOne(): Promise<void> {
    const store = await this.#time.during(this.#open("the template"));
    const tape = await this.#process(store, -1);
    await this.#time.during(tape.start(this.#waits, this.#fleet.intervalSeconds * 1_000, { id: template }));
    await this.#time.elapse(1_000);
    await this.#time.during(tape.close());
    await this.#time.during(store.close());
  }

  #process(store: Store, k: number): Promise<Tape> {
    const { ttlSeconds, held } = this.#fleet;
    const process = new TestProcess({ name: `${k}`, clock: this.#time, store, crashPointAt: (at) => this.#count(at) });
    const options = { store: process.store, clock: process.clock, random: seededRandom(`capacity ${k}`) };
    const more = { leaseTtl: ttlSeconds * 1_000, concurrency: 1_000 + held, report: false, log: "silent" } as const;
    return this.#time.during(Tape.open({ ...options, ...more, runner: this.#runner }));
  }

  #count({ name, edge, result }: Boundary): undefined {
    if (edge !== "after") return;
    if (name === "fenced.append") this.#appends++;
    if (name === "claim.renew") {
      this.#renewCalls++;
      this.#renewals += (result as readonly unknown[]).length;
    }
  }

  #written(): { readonly records: number; readonly slept: number } {
    const db = new DatabaseSync(this.#file, { readOnly: true });
    const text = "select count(*) as records, count(*) filter (where kind = 'sleep.ended') as slept from records";
    const { records, slept } = db.prepare(text).get() as { records: number; slept: number };
    db.close();
    return { records, slept };
  }

  #copy(): void {
    const { waiting, intervalSeconds } = this.#fleet;
    const intervalMs = intervalSeconds * 1_000;
    const db = new DatabaseSync(this.#file);
    const { journal } = db.prepare("select journal from runs where id = ?").get(template) as { journal: number };
    const { next } = db.prepare("select next_journal as next from meta").get() as { next: number };
    const id = `replace(body, '"id":"${template}"', '"id":"waits-' || n || '"')`;
    // The first copy falls due when the processes have opened, the last one an interval later.
    const due = `due_at - ${intervalMs} + ${warmUpMs} + (n - ${next}) * ${intervalMs} / ${waiting}`;
    const changed: Readonly<Record<string, Readonly<Record<string, string>>>> = {
      runs: { journal: "n", root: "n", id: "'waits-' || n" },
      leases: { journal: "n", run: "n" },
      records: { journal: "n", body: id },
      timers: { run: "n", due_at: due },
    };
    db.exec("begin immediate");
    for (const [table, changes] of Object.entries(changed)) {
      const columns = (db.prepare(`select name from pragma_table_info('${table}')`).all() as { name: string }[])
        .map(({ name }) => name)
        .filter((name) => !(table === "records" && name === "id")); // the row's own number
      const values = columns.map((column) => changes[column] ?? column).join(", ");
      const numbers = `with recursive numbers(n) as (select ${next} union all select n + 1 from numbers where n < ${next + waiting - 1})`;
      const key = table === "timers" ? "run" : "journal";
      db.exec(
        `${numbers} insert into ${table}(${columns.join(", ")}) select ${values} from numbers, ${table} where ${key} = ${journal}`,
      );
    }
    db.exec(`update meta set next_journal = ${next + waiting}; commit; pragma wal_checkpoint(truncate)`);
    db.close();
  }
}
