import type { Random } from "../../src/base/random.ts";
import { TapeError } from "../../src/model/errors.ts";
import type { Term } from "../../src/model/lease.ts";
import type { NewRecord } from "../../src/model/records.ts";
import type { EffectRow } from "../../src/model/rows.ts";
import type { StoreFixture } from "./frame.ts";
import { record, request, spec, step, tenant, unique } from "./frame.ts";
import {
  armed,
  begin,
  confirmed,
  decided,
  dispatched,
  ended,
  find,
  Holder,
  hold,
  intent,
  type Settlement,
  settled,
} from "./holder.ts";

/**
 * A seeded random workload: holders that come and go, perform random actions, and are often refused. One call after
 * another, so that the feed's order is the commit order on every store.
 */
export class Workload {
  readonly #fixture: StoreFixture;
  readonly #random: Random;
  #runs: Holder[] = [];
  #items: Holder[] = [];
  /** Every term that was held: an owner that dispatched an effect may leave evidence much later. */
  readonly #terms: Term[] = [];
  /** How often each refusal and each action occurred. */
  readonly refusals: Record<string, number> = {};
  readonly done: Record<string, number> = {};

  constructor(fixture: StoreFixture, random: Random) {
    this.#fixture = fixture;
    this.#random = random;
  }

  async run(steps: number): Promise<void> {
    const actions = Object.entries(this.#actions());
    for (let left = steps; left > 0; ) {
      // Sometimes one of the rarest actions: a workload proves little about an action that never occurs.
      const rarest = actions.toSorted(([a], [b]) => (this.done[a] ?? 0) - (this.done[b] ?? 0)).slice(0, 4);
      const [name, action] = this.#pick(this.#chance(40) ? rarest : actions);
      try {
        if (!(await action())) continue; // there was nothing to apply it to
        left--;
        this.done[name] = (this.done[name] ?? 0) + 1;
      } catch (error) {
        if (!(error instanceof TapeError)) throw error;
        left--;
        this.refusals[error.code] = (this.refusals[error.code] ?? 0) + 1;
        // A refused holder may have lost its term; then it is of no more use.
        if (error.code === "TAPE_FENCED" || error.code === "TAPE_NOT_HEAD") this.#forgetStale(error.details.journal);
      }
    }
  }

  /** Actions that have not occurred yet. */
  never(): string[] {
    return Object.keys(this.#actions()).filter((name) => (this.done[name] ?? 0) === 0);
  }

  #pick<T>(from: readonly T[]): T {
    return from[this.#random.int(from.length)]!;
  }

  #chance(percent: number): boolean {
    return this.#random.int(100) < percent;
  }

  #keep(holder: Holder, among: Holder[]): void {
    among.push(holder);
    this.#terms.push(holder.term);
  }

  #forgetStale(journal: unknown): void {
    this.#runs = this.#runs.filter((holder) => holder.journal !== journal);
    this.#items = this.#items.filter((holder) => holder.journal !== journal);
  }

  /** An action of a run's holder; false if there is no holder. */
  #byRun(make: (run: Holder) => Promise<readonly NewRecord[]> | readonly NewRecord[]): () => Promise<boolean> {
    return async () => {
      for (let tries = 0; tries < 3 && this.#runs.length > 0; tries++) {
        const run = this.#pick(this.#runs);
        const records = await make(run);
        if (records.length === 0) continue;
        await run.write(...records);
        if (records.some(({ kind }) => kind === "term.ended" || kind === "run.ended")) this.#forgetStale(run.journal);
        return true;
      }
      return false;
    };
  }

  async #effectsOf(run: Holder, fits: (effect: EffectRow) => boolean): Promise<EffectRow | undefined> {
    const rows = (await run.store.read.effects(tenant, { run: run.id })).filter(fits);
    return rows.length === 0 ? undefined : this.#pick(rows);
  }

  #actions(): Record<string, () => Promise<boolean>> {
    const { store, elapse } = this.#fixture;
    const pos = () => this.#random.int(12);
    const inline = async (run: Holder, then: (effect: EffectRow) => NewRecord[]) => {
      const effect = await this.#effectsOf(
        run,
        ({ role, authority }) => role === "effect" && authority === run.journal,
      );
      return effect === undefined ? [] : then(effect);
    };
    return {
      create: async () => {
        if (this.#runs.length > 4) return false; // few, so that each gets many records
        const run = await begin(store, { budget: { usd: 10 }, labels: { team: this.#pick(["ops", "dev"]) } });
        this.#keep(run, this.#runs);
        return true;
      },
      "create for later": async () =>
        this.#chance(30) && (await store.intake.createRuns(tenant, [spec()])).every(({ ok }) => ok),
      step: this.#byRun(() => [step(pos())]),
      intend: this.#byRun(() => [
        intent(pos(), {
          semantics: this.#pick(["idempotent", "non_idempotent"]),
          businessKey: `order-${this.#random.int(30)}`,
        }),
      ]),
      "hand to the outbox": this.#byRun(() => [intent(pos(), { dispatch: "outbox" })]),
      dispatch: this.#byRun((run) => inline(run, (effect) => [dispatched(effect.pos)])),
      settle: this.#byRun((run) =>
        inline(run, (effect) => {
          const to = this.#pick<Settlement>(["CONFIRMED", "CONFIRMED", "FAILED", "UNKNOWN", "PENDING"]);
          const records = [settled(effect.pos, to, { reason: this.#pick(["returned", "not_sent"]), value: to })];
          return to === "CONFIRMED" ? [...records, armed(effect.pos)] : records;
        }),
      ),
      "make due": this.#byRun(async (run) => {
        const due = (at: number, sub = 1) => record("obligation.due", { pos: at, sub, reason: "asked" });
        const owed = await this.#effectsOf(run, ({ role }) => role === "compensation");
        const fresh = 20 + this.#random.int(1_000);
        return owed === undefined ? [...confirmed(fresh), armed(fresh), due(fresh)] : [due(owed.pos, owed.sub)];
      }),
      surplus: this.#byRun(() => [
        record("obligation.surplus", {
          pos: pos(),
          sub: 2 + this.#random.int(3),
          semantics: "idempotent",
          key: "s",
          args: 1,
          ...(this.#chance(50) ? { name: "undo" } : {}),
        }),
      ]),
      "open a gate": this.#byRun(() => [
        record("gate.opened", { pos: pos(), name: "g", payload: 1, ...(this.#chance(50) ? { timeoutMs: 5 } : {}) }),
      ]),
      "resolve a gate": this.#byRun(async (run) => {
        const gates = await store.read.gates(tenant, { run: run.id });
        const to = this.#pick(["RECEIVED", "TIMED_OUT", "WITHDRAWN"] as const);
        return gates.length === 0 ? [] : [record("gate.resolved", { pos: this.#pick(gates).pos, to, value: 2 })];
      }),
      "set a timer": this.#byRun(() => [record("timer.set", { pos: pos(), purpose: "sleep", delayMs: 5 })]),
      "cancel a timer": this.#byRun(async (run) => {
        const timers = await store.read.timers(tenant, { run: run.id });
        const { pos: at, purpose } = timers.length === 0 ? { pos: 0, purpose: "sleep" } : this.#pick(timers);
        return [record("timer.cancelled", { pos: at, purpose })];
      }),
      "fire timers": async () => {
        await elapse(8);
        const due = await store.read.dueTimers(3);
        for (const timer of due) await store.intake.fireTimer(tenant, timer);
        return due.length > 0;
      },
      reserve: this.#byRun(async (run) => [
        record("budget.reserved", { pos: 0, rootRun: (await run.view()).root, amounts: { usd: 3 } }),
      ]),
      charge: this.#byRun(async (run) => {
        const [usd] = await store.read.budgets(tenant, run.id);
        const charged = { pos: 0, rootRun: run.journal, spent: { usd: 1 }, reserved: { usd: 3 } };
        return (usd?.reserved ?? 0) > 0 || this.#chance(5) ? [record("budget.charged", charged)] : [];
      }),
      "start a child": this.#byRun((run) => [
        record("child.started", { pos: pos(), id: unique(`${run.id}/child`), workflow: "w", input: 1, inputHash: "h" }),
      ]),
      "write a value": this.#byRun(async () => {
        const version = (await store.read.value(tenant, "k"))?.version ?? 0;
        return [record("value.written", { key: "k", version: version + 1, value: version })];
      }),
      signal: async () => {
        const runs = await store.read.runs(tenant, { status: ["RUNNING", "WAITING", "ENDING", "COMPENSATING"] });
        if (runs.length === 0) return false;
        await store.intake.signal(tenant, this.#pick(runs).id, { name: "s", value: 1 });
        return true;
      },
      park: this.#byRun(async (run) => {
        const { notes } = await run.view();
        const nextReactor = this.#chance(50) ? { nextReactor: "recovery" } : {};
        return [
          record("notes.taken", { through: notes }),
          record("term.ended", { reason: "released", notesTaken: notes, ...nextReactor }),
        ];
      }),
      decide: this.#byRun(() =>
        this.#chance(30) ? [decided(this.#pick(["completed", "failed", "cancelled"]), { why: 1 })] : [],
      ),
      compensate: async () => {
        const run = this.#chance(50) && this.#runs.length > 0 ? this.#pick(this.#runs) : await begin(store);
        if (run.head === 1) await run.write(...confirmed(0), armed(0), ...confirmed(1), armed(1), decided("failed"));
        if (!this.#runs.includes(run)) this.#keep(run, this.#runs);
        await run.write(record("run.compensating", {}));
        return true;
      },
      stick: this.#byRun(() => (this.#chance(20) ? [record("run.stuck", { reason: "odd" })] : [])),
      unstick: this.#byRun((run) => this.#unstick(run)),
      end: this.#byRun((run) => this.#end(run)),
      "drive what waits": async () => this.#driveFound("recovery", this.#runs),
      "work on items": async () => this.#driveFound(this.#pick(["outbox", "reconciler", "compensation"]), this.#items),
      "settle an item": () => this.#settleItem(),
      "settle another item": () => this.#settleItem(),
      "leave evidence": async () => this.#evidence(),
      "take over": async () => {
        if (this.#runs.length === 0 || this.#chance(70)) return false;
        const { id } = this.#pick(this.#runs);
        this.#keep(
          await hold(store, id, { run: id }, { expect: "any", by: "ann", auditReason: "it hangs" }),
          this.#runs,
        );
        return true;
      },
      "hold a name": async () => {
        if (this.#chance(70)) return false;
        const result = await store.claim.acquire(
          tenant,
          request({ name: "sweeper" }, { expect: "any", by: "a", auditReason: "w" }),
        );
        if (!result.ok) throw result.error;
        await new Holder(store, result.term, "none").release();
        return true;
      },
    };
  }

  async #unstick(run: Holder): Promise<NewRecord[]> {
    const { stuckFrom } = await run.view();
    if (stuckFrom !== "LIVE" && stuckFrom !== "ENDING" && stuckFrom !== "COMPENSATING") return [];
    return [record("run.unstuck", { to: stuckFrom })];
  }

  async #end(run: Holder): Promise<NewRecord[]> {
    const { status, cause, notes, parent, journal } = await run.view();
    if (status === "RUNNING" && this.#chance(70)) return [];
    const word = (cause ?? "completed").toUpperCase() as "COMPLETED" | "FAILED" | "CANCELLED";
    const above = (await run.store.read.runs(tenant)).find((view) => view.journal === parent);
    const [first] = await run.store.read.journal(tenant, { journal }, { limit: 1 });
    const at = first?.kind === "run.created" ? first.data.parent?.pos : undefined;
    return [
      ended(status === "COMPENSATING" ? "COMPENSATED" : word, {
        notesTaken: notes,
        ...(status === "RUNNING" ? { outcome: { done: 1n } } : {}),
        ...(above === undefined || at === undefined ? {} : { parent: { journal: above.journal, pos: at, id: run.id } }),
      }),
    ];
  }

  async #driveFound(nextReactor: string, into: Holder[]): Promise<boolean> {
    const { store } = this.#fixture;
    const terms = await find(store, nextReactor);
    const views = terms.length === 0 ? [] : await store.read.runs(tenant);
    for (const term of terms) {
      this.#keep(new Holder(store, term, views.find(({ journal }) => journal === term.run)?.id ?? ""), into);
    }
    return terms.length > 0;
  }

  async #settleItem(): Promise<boolean> {
    if (this.#items.length === 0) return false;
    const item = this.#pick(this.#items);
    const effect = await this.#effectsOf(item, ({ item: of }) => of === item.journal);
    if (effect === undefined) return false;
    const { run, pos, sub, status, role } = effect;
    const over = ["CONFIRMED", "FAILED", "COMPENSATED", "STUCK", "WITHDRAWN", "DISCHARGED"].includes(status);
    if (over || this.#chance(15)) {
      const notes = await item.store.read.journal(tenant, { journal: item.journal }, { inbox: true });
      await item.write(record("notes.taken", { through: notes.length }));
      await item.release(notes.length, over ? {} : { nextReactor: role === "effect" ? "reconciler" : "compensation" });
      this.#forgetStale(item.journal);
    } else if (status === "PENDING") await item.write(dispatched(pos, { run, sub, attempt: effect.attempt + 1 }));
    else if (role === "compensation") {
      const to = this.#pick(["COMPENSATED", "COMPENSATED", "UNKNOWN", "PENDING", "STUCK"] as const);
      await item.write(record("obligation.settled", { run, pos, sub, to, reason: "returned" }));
    } else {
      const to = this.#pick<Settlement>(["CONFIRMED", "FAILED", "UNKNOWN", "PENDING", "STUCK"]);
      const more = to === "CONFIRMED" ? [armed(pos, { run })] : [];
      await item.write(settled(pos, to, { run, reason: "operator", error: "e" }), ...more);
    }
    return true;
  }

  async #evidence(): Promise<boolean> {
    const { store } = this.#fixture;
    const sent = (await store.read.effects(tenant)).flatMap(({ run, pos, sub, authority, item, attemptToken }) => {
      const senders = this.#terms.filter(({ journal }) => [run, authority, item].includes(journal));
      const sender = senders.find(({ fence }) => fence.token === attemptToken);
      return sender === undefined ? [] : [{ run, pos, sub, token: attemptToken!, nonce: sender.fence.nonce }];
    });
    if (sent.length === 0) return false;
    const attempt = this.#pick(sent);
    await store.intake.leaveEvidence(tenant, attempt, { happened: this.#chance(50) });
    return true;
  }
}
