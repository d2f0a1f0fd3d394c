import { strict as assert } from "node:assert";
import { createHash } from "node:crypto";
import type { Term } from "../../src/model/lease.ts";
import type { NewRecord } from "../../src/model/records.ts";
import { encodeSchedule } from "../../src/model/schedule.ts";
import { effect } from "../../src/sdk/effect.ts";
import { outcome } from "../../src/sdk/outcomes.ts";
import { createRunner } from "../../src/sdk/workflow.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { chatOf } from "./chat-scene.ts";
import type { PastClock } from "./past-clock.ts";
import { sagaOf } from "./saga.ts";
import { sinksOf } from "./sinks-scene.ts";

const wire = effect("bank.wire", async (order: { readonly invoice: string }) => ({ receipt: order.invoice }), {
  businessKey: ({ invoice }) => invoice,
  observe: async () => outcome.inconclusive("the bank is closed"),
});

const charge = effect("card.charge", async (order: { readonly invoice: string }) => ({ receipt: order.invoice }), {
  businessKey: ({ invoice }) => invoice,
  observe: async () => outcome.inconclusive("no answer"),
  compensate: async () => ({ refunded: true }),
});

/** The server needs the scene's effects, so that an operator can confirm or compensate them. */
export const sceneRunner = createRunner({ workflows: [], effects: [wire, charge] });

export const tenant = "default";
const hour = 3_600_000;
/** The fingerprint that the gates are bound to. */
export const bound = createHash("sha256").update("bank.wire").digest("hex");
export const markup = '<img src=x onerror="document.title=1"><script>document.title=2</script>';

/** A history of a few hours, written record by record, so that the store holds exactly what the tests expect. */
export class Scene {
  readonly #store: Store;
  readonly #clock: PastClock;
  readonly #pass: (ms: number) => Promise<void>;
  #nonce = 1_000n;

  /** `pass` lets minutes pass in which the scene writes nothing. */
  constructor(store: Store, clock: PastClock, pass = async (ms: number): Promise<void> => clock.elapse(ms)) {
    this.#store = store;
    this.#clock = clock;
    this.#pass = pass;
  }

  /** `odd` adds text that looks like markup. */
  async make({ odd }: { readonly odd: boolean }): Promise<void> {
    await this.#days();
    await this.#takeover();
    await chatOf(this, this.#store, this.#clock);
    await this.inDoubt("payout-77", { labels: { customer: "acme" } });
    await this.inDoubt("payout-80", { open: true });
    await this.#stuck();
    await this.#failed();
    await sagaOf(this, this.#store, this.#clock);
    await this.#pass(20 * 60_000);
    await this.gate("treasury-2026-11-15");
    await this.#held();
    if (odd) await this.#markup();
    await this.#around();
    await this.#queues();
    await sinksOf(this, this.#store, this.#clock);
    this.#clock.arrive();
    await this.report();
  }

  /** Process reports of both workers. The store lists them for a minute. */
  async report(): Promise<void> {
    const stats = { found: 0, done: 0, failed: 0, faults: 0, busy: 0, unserved: 0, lagMs: 0, errorsPerMinute: 0 };
    const names = ["recovery", "reconciler", "outbox", "timers", "compensation"];
    const report = (label: string, rates: readonly number[], failed: number, holds: string, stands: string) => {
      const perReactor = names.map((name, k) => [name, { ...stats, done: rates[k], perMinute: rates[k] }] as const);
      const outbox = { ...stats, failed, done: rates[2], perMinute: rates[2], errorsPerMinute: failed };
      const singletons = [
        { name: holds, state: "holder" },
        { name: stands, state: "standby" },
      ];
      const startedAt = this.#clock.wall() - 79 * 60_000;
      const body = {
        ...{ startedAt, driving: label === "worker-b" ? 1 : 0, singletons },
        reactors: { ...Object.fromEntries(perReactor), outbox },
      };
      return this.#store.intake.reportProcess(tenant, { owner: `${label}/1`, label, body });
    };
    await report("worker-a", [14, 1, 6, 3, 0], 0, "sweeper", "nightly-report");
    await report("worker-b", [11, 0, 4, 2, 0], 2, "nightly-report", "sweeper");
  }

  /** Earlier, quiet days with one run each. */
  async #days(): Promise<void> {
    for (let day = 1; day <= 12; day++) {
      const term = await this.begin(`sync-${String(day).padStart(3, "0")}`, "sync", "worker-a");
      const steps = ["list", "compare", "write"].map((name, pos) => done("step.done", { pos, name, value: pos * day }));
      this.#clock.elapse(900);
      await this.write(
        term,
        ...steps,
        done("run.ended", { status: "COMPLETED", outcome: { written: day }, notesTaken: 0 }),
      );
      await this.#pass(4 * 60_000);
    }
  }

  /** worker-a dies between the wire and its record; worker-b takes over, and the reconciler asks the bank. */
  async #takeover(): Promise<void> {
    const id = "treasury-2026-11-14";
    const order = { invoice: "sweep-2026-11-14", account: "reserve", amount: 250_000 };
    const first = await this.begin(id, "treasury", "worker-a", { ttlMs: 30_000, budget: { usd: 50_000_000 } });
    this.#clock.elapse(1_900);
    const plan = {
      ...{ model: "planner-1", policy: "cash-3", rationale: "more cash than needed", usage: { tokens: 812 } },
      request: { task: "plan the sweep", balance: 1_250_000, keep: 1_000_000 },
      response: { account: "reserve", amount: 250_000, why: "more cash than needed" },
    };
    const head = await this.write(
      first,
      done("decision.made", { pos: 0, name: "plan", value: { account: "reserve", amount: 250_000 }, ...plan }),
      done("gate.opened", { pos: 1, name: "cfo", payload: order, binds: bound }),
    );
    this.#clock.elapse(11_000);
    await this.#store.intake.signal(tenant, id, { name: "cfo", value: { approved: true }, by: "ada" });
    await this.append(first, head, [
      done("notes.taken", { through: 1 }),
      done("gate.resolved", { pos: 1, note: 1, to: "RECEIVED", value: { approved: true } }),
      done("effect.intended", { ...intent(2, order), businessKey: order.invoice }),
      done("effect.dispatched", { pos: 2, attempt: 1, sendWithinMs: 10_000 }),
    ]);
    this.#clock.elapse(31_000);
    const second = await this.acquire({ run: id }, "worker-b", "expired", { reason: "timeout" });
    this.#clock.elapse(300);
    await this.write(
      second,
      done("effect.settled", { pos: 2, to: "UNKNOWN", reason: "lease_lost" }),
      done("term.ended", { reason: "released", notesTaken: 1 }),
    );
    this.#clock.elapse(2_000);
    const item = await this.#item(id, "worker-b");
    this.#clock.elapse(1_400);
    const receipt = { value: { receipt: "r-118" } };
    await this.write(
      item.term,
      done("effect.observed", { run: item.run, pos: 2, observation: "confirmed", detail: receipt.value }),
      done("effect.settled", { run: item.run, pos: 2, to: "CONFIRMED", reason: "observed", ...receipt }),
      done("term.ended", { reason: "released", notesTaken: 0 }),
    );
    this.#clock.elapse(200);
    const third = await this.acquire({ run: id }, "worker-b", "free", { reason: "wake" });
    this.#clock.elapse(900);
    await this.write(
      third,
      done("notes.taken", { through: 2 }),
      done("effect.received", { pos: 2, status: "CONFIRMED", ...receipt }),
      done("step.done", { pos: 3, name: "book", value: { entry: 4411n } }),
      done("run.ended", { status: "COMPLETED", outcome: { done: true, receipt: "r-118" }, notesTaken: 2 }),
    );
    await this.#pass(6 * 60_000);
  }

  /** An effect whose response was lost, and an inconclusive observation; with `open` another one will follow. */
  async inDoubt(id: string, { name = "bank.wire", open = false, labels }: InDoubtOptions = {}): Promise<void> {
    const order = { invoice: `inv-${id}`, account: "supplier", amount: 1_240 };
    const term = await this.begin(id, "payout", "worker-a", labels && { labels });
    this.#clock.elapse(1_200);
    await this.write(
      term,
      done("step.done", { pos: 0, name: "load invoice", value: order }),
      done("effect.intended", { ...intent(1, order), name, businessKey: order.invoice }),
      done("effect.dispatched", { pos: 1, attempt: 1, sendWithinMs: 10_000 }),
      done("effect.settled", { pos: 1, to: "UNKNOWN", reason: "ack_lost" }),
      done("term.ended", { reason: "released", notesTaken: 0 }),
    );
    this.#clock.elapse(5_000);
    const { term: item, run } = await this.#item(id, "worker-b");
    const observed = done("effect.observed", {
      run,
      pos: 1,
      observation: "inconclusive",
      detail: "the bank is closed",
    });
    if (open) {
      const next = { nextReactor: "reconciler", delayMs: 2 * hour };
      await this.write(item, observed, done("term.ended", { reason: "released", notesTaken: 0, ...next }));
      return;
    }
    await this.write(
      item,
      observed,
      done("effect.settled", { run, pos: 1, to: "STUCK", reason: "inconclusive" }),
      done("term.ended", { reason: "released", notesTaken: 0 }),
    );
    const resumed = await this.acquire({ run: id }, "worker-b", "free", { reason: "wake" });
    await this.write(
      resumed,
      done("notes.taken", { through: 1 }),
      done("run.stuck", {
        reason: `${name} is in doubt: an operator must resolve it`,
        effects: [{ run, pos: 1, sub: 0 }],
      }),
      done("term.ended", { reason: "released", notesTaken: 1 }),
    );
  }

  async gate(id: string): Promise<void> {
    const term = await this.begin(id, "treasury", "worker-a", { budget: { usd: 50_000_000 } });
    const plan = { account: "reserve", amount: 180_000 };
    this.#clock.elapse(1_700);
    await this.write(
      term,
      done("decision.made", { pos: 0, name: "plan", value: plan, model: "planner-1", rationale: "end of the month" }),
      ...spending(term, 1, { usd: 12_400_000 }),
      done("gate.opened", { pos: 3, name: "cfo", payload: plan, binds: bound, timeoutMs: 24 * hour }),
      done("term.ended", { reason: "released", notesTaken: 0 }),
    );
  }

  async #stuck(): Promise<void> {
    const term = await this.begin("refund-12", "refund", "worker-b");
    await this.write(
      term,
      done("step.done", { pos: 0, name: "load order", value: { order: 12 } }),
      done("run.stuck", {
        reason: "at position 1 the journal has step tax, but the code requests step price",
        detail: { pos: 1 },
      }),
      done("term.ended", { reason: "released", notesTaken: 0 }),
    );
  }

  async #failed(): Promise<void> {
    const term = await this.begin("report-9", "report", "worker-b");
    this.#clock.elapse(2_300);
    await this.write(
      term,
      done("step.done", { pos: 0, name: "query", error: { name: "Error", message: "relation sales does not exist" } }),
      done("run.ended", { status: "FAILED", outcome: { error: "relation sales does not exist" }, notesTaken: 0 }),
    );
  }

  /** Leases that are held: a run, a singleton, and a singleton that renews without progress. */
  async #held(): Promise<void> {
    const budget = { usd: 20_000_000, tokens: 400_000_000_000 };
    const term = await this.begin("import-31", "import", "worker-b", { ttlMs: hour, budget });
    const steps = Array.from({ length: 8 }, (_none, pos) =>
      done("step.done", { pos, name: `part ${pos + 1}`, value: pos }),
    );
    await this.write(term, ...steps, ...spending(term, 8, { usd: 18_700_000, tokens: 212_000_000_000 }));
    await this.acquire({ name: "sweeper" }, "worker-a", "free", { reactor: "sweeper", ttlMs: hour });
    await this.acquire({ name: "nightly-report" }, "worker-b", "free", {
      reactor: "nightly-report",
      ttlMs: 2 * hour,
      maxStallMs: 60_000,
    });
    await this.#pass(3 * 60_000);
  }

  /** Text that would do harm if the page treated it as markup. */
  async #markup(): Promise<void> {
    const term = await this.begin(`odd ${markup}`, markup, markup, { labels: { odd: markup } });
    await this.write(
      term,
      done("step.done", { pos: 0, name: markup, value: markup }),
      done("gate.opened", { pos: 1, name: markup, payload: { markup } }),
      done("term.ended", { reason: "released", notesTaken: 0 }),
    );
    await this.#store.intake.putValue(tenant, markup, markup, "must_create");
  }

  async #around(): Promise<void> {
    const { intake, claim } = this.#store;
    await intake.putValue(tenant, "rates/eur", { usd: 1.17 }, "must_create");
    await intake.putValue(tenant, "rates/eur", { usd: 1.18 }, "unconditional");
    await intake.putValue(tenant, "limits/wire", { daily: 500_000 }, "must_create");
    const when = { cron: "0 6 * * *", timeZone: "UTC", overlap: "skip", catchUp: "latest", windowMs: hour } as const;
    const spec = encodeSchedule({ uid: "u", workflow: "treasury", input: {}, ...when, dueAt: null, lastRun: null });
    await intake.putSchedule(tenant, {
      id: "treasury-daily",
      spec,
      nextAt: this.#clock.wall() + 5 * hour,
      paused: false,
    });
    await claim.pause(tenant, "old-sweeper", true, "ada", "replaced by sweeper");
    await claim.pause(tenant, "mailer", true, "ada", "the mail server is being moved");
    this.#clock.elapse(40_000);
    await claim.pause(tenant, "mailer", false, "ada", "it is back");
  }

  /** A queue that is full, and one that is paused. */
  async #queues(): Promise<void> {
    const { intake, claim } = this.#store;
    const rate = { limit: 600, perMs: 60_000, burst: 20 };
    await intake.putQueue(tenant, "models", { concurrency: 3, rate, perKey: { concurrency: 2 }, counts: "running" });
    await intake.putQueue(tenant, "mails", { concurrency: 10, counts: "running" });
    const keys = ["acme", "acme", "acme", "globex", "globex", "initech"];
    const specs = keys.map((key, k) => ({ id: `ask-${k + 1}`, workflow: "ask", input: k, queue: "models", key }));
    for (const spec of specs) {
      await intake.createRuns(tenant, [spec]);
      this.#clock.elapse(7_000);
    }
    const claimant = { owner: "worker-b/1", label: "worker-b", reactor: "recovery", ttlMs: hour };
    const request = { tenant, claimant, nextReactor: "none", staleOf: [], limit: 10, nonce: this.#nonce++ };
    await claim.find({ ...request, workflows: ["ask"], queues: [{ name: "models", room: 10 }] });
    await intake.pauseQueue(tenant, "mails", true, { by: "ada", reason: "the mail server is being moved" });
    this.#clock.elapse(20_000);
  }

  async begin(id: string, workflow: string, label: string, more: BeginOptions = {}): Promise<Term> {
    const { ttlMs = 60_000, labels, budget, input = { of: id } } = more;
    const spec = { id, workflow, input, ...(labels && { labels }), ...(budget && { budget }) };
    const claimant = { owner: `${label}/1`, label, reactor: "recovery", ttlMs, nonce: this.#nonce++ };
    const [created] = await this.#store.intake.createRuns(tenant, [spec], claimant);
    assert.ok(created?.ok && created.term);
    return created.term;
  }

  write(term: Term, ...records: readonly NewRecord[]): Promise<number> {
    return this.append(term, term.head, records);
  }

  async append({ fence }: Term, after: number, records: readonly NewRecord[]): Promise<number> {
    return (await this.#store.fenced.append(fence, { after, records })).head;
  }

  /** The item of the run's effect in doubt, acquired by the reconciler. */
  async #item(id: string, label: string): Promise<{ readonly term: Term; readonly run: number }> {
    const [row] = await this.#store.read.effects(tenant, { run: id });
    assert.ok(row?.item);
    const term = await this.acquire({ journal: row.item }, label, "free", { reactor: "reconciler" });
    return { term, run: row.run };
  }

  async acquire(
    target: { run: string } | { name: string } | { journal: number },
    label: string,
    expect: "free" | "expired",
    more: { reason?: "timeout" | "wake"; reactor?: string; ttlMs?: number; maxStallMs?: number } = {},
  ): Promise<Term> {
    const { reason, reactor = "recovery", ttlMs = 60_000, maxStallMs } = more;
    const claimant = { owner: `${label}/1`, label, reactor, ttlMs, ...(maxStallMs !== undefined && { maxStallMs }) };
    const nonce = this.#nonce++;
    const result = await this.#store.claim.acquire(tenant, {
      target,
      claimant,
      nonce,
      expect,
      ...(reason && { reason }),
    });
    if (!result.ok) throw result.error;
    return result.term;
  }
}

interface InDoubtOptions {
  readonly name?: string;
  readonly open?: boolean;
  readonly labels?: Readonly<Record<string, string>>;
}

interface BeginOptions {
  readonly ttlMs?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly budget?: Readonly<Record<string, number>>;
  readonly input?: unknown;
}

export const done = (kind: string, data: object): NewRecord => ({ kind, data }) as NewRecord;
const spending = ({ journal }: Term, pos: number, amounts: object): NewRecord[] => [
  done("budget.reserved", { pos, rootRun: journal, amounts }),
  done("budget.charged", { pos: pos + 1, reservation: pos, rootRun: journal, spent: amounts, reserved: amounts }),
];
const intent = (pos: number, args: object) => ({
  ...{ pos, name: "bank.wire", semantics: "non_idempotent", dispatch: "inline" },
  ...{ key: `key-${pos}`, argsHash: "h", args },
});
