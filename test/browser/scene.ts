import { strict as assert } from "node:assert";
import { createHash } from "node:crypto";
import type { Term } from "../../src/model/lease.ts";
import type { NewRecord } from "../../src/model/records.ts";
import { encodeSchedule } from "../../src/model/schedule.ts";
import { effect } from "../../src/sdk/effect.ts";
import { outcome } from "../../src/sdk/outcomes.ts";
import { createRunner } from "../../src/sdk/workflow.ts";
import type { Store } from "../../src/store/contract/store.ts";
import type { PastClock } from "./past.ts";
import { sagaOf } from "./saga.ts";

const wire = effect("bank.wire", async (order: { readonly invoice: string }) => ({ receipt: order.invoice }), {
  businessKey: ({ invoice }) => invoice,
  observe: async () => outcome.inconclusive("the bank is closed"),
});

const charge = effect("card.charge", async (order: { readonly invoice: string }) => ({ receipt: order.invoice }), {
  businessKey: ({ invoice }) => invoice,
  observe: async () => outcome.inconclusive("no answer"),
  compensate: async () => ({ refunded: true }),
});

/** With it the server knows the effects of the scene, and a person can say that one happened, or has it undone. */
export const sceneRunner = createRunner({ workflows: [], effects: [wire, charge] });

export const tenant = "default";
const hour = 3_600_000;
/** What the gates bind: an act has a fingerprint. */
export const bound = createHash("sha256").update("bank.wire").digest("hex");
export const markup = '<img src=x onerror="document.title=1"><script>document.title=2</script>';

/** A history of a few hours, written record by record: what it shows is then exactly what is in the store. */
export class Scene {
  readonly #store: Store;
  readonly #clock: PastClock;
  readonly #rest: (ms: number) => Promise<void>;
  #nonce = 1_000n;

  /** `rest` is how minutes pass in which nothing is told. */
  constructor(store: Store, clock: PastClock, rest = async (ms: number): Promise<void> => clock.elapse(ms)) {
    this.#store = store;
    this.#clock = clock;
    this.#rest = rest;
  }

  /** `odd`: with text in it that looks like markup. */
  async make({ odd }: { readonly odd: boolean }): Promise<void> {
    await this.#days();
    await this.#takeover();
    await this.doubt("payout-77", { labels: { customer: "acme" } });
    await this.doubt("payout-80", { open: true });
    await this.#stuck();
    await this.#failed();
    await sagaOf(this, this.#store, this.#clock);
    await this.#rest(20 * 60_000);
    await this.gate("treasury-2026-11-15");
    await this.#held();
    if (odd) await this.#markup();
    await this.#around();
    this.#clock.arrive();
    await this.report();
  }

  /** The two workers say what they are at; they are listed for a minute. */
  async report(): Promise<void> {
    const tally = { found: 0, done: 0, failed: 0, faults: 0, busy: 0, unserved: 0, lagMs: 0, errorsPerMinute: 0 };
    const names = ["recovery", "reconciler", "outbox", "timers", "compensation"];
    const report = (label: string, rates: readonly number[], failed: number, holds: string, stands: string) => {
      const tallies = names.map((name, k) => [name, { ...tally, done: rates[k], perMinute: rates[k] }] as const);
      const outbox = { ...tally, failed, done: rates[2], perMinute: rates[2], errorsPerMinute: failed };
      const singletons = [
        { name: holds, state: "holder" },
        { name: stands, state: "standby" },
      ];
      const startedAt = this.#clock.wall() - 79 * 60_000;
      const body = {
        ...{ startedAt, driving: label === "worker-b" ? 1 : 0, singletons },
        reactors: { ...Object.fromEntries(tallies), outbox },
      };
      return this.#store.intake.report(tenant, { owner: `${label}/1`, label, body });
    };
    await report("worker-a", [14, 1, 6, 3, 0], 0, "sweeper", "nightly-report");
    await report("worker-b", [11, 0, 4, 2, 0], 2, "nightly-report", "sweeper");
  }

  /** Quiet days before, one run each. */
  async #days(): Promise<void> {
    for (let day = 1; day <= 12; day++) {
      const term = await this.begin(`sync-${String(day).padStart(3, "0")}`, "sync", "worker-a");
      const steps = ["list", "compare", "write"].map((name, pos) => done("step.done", { pos, name, value: pos * day }));
      this.#clock.elapse(900);
      await this.write(term, ...steps, done("run.ended", { status: "COMPLETED", outcome: { written: day }, taken: 0 }));
      await this.#rest(4 * 60_000);
    }
  }

  /** worker-a dies between the wire and the record of it; worker-b takes over and somebody looks at the bank. */
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
      done("term.ended", { end: "released", taken: 1 }),
    );
    this.#clock.elapse(2_000);
    const look = await this.#item(id, "worker-b");
    this.#clock.elapse(1_400);
    const receipt = { value: { receipt: "r-118" } };
    await this.write(
      look.term,
      done("effect.observed", { run: look.run, pos: 2, observation: "confirmed", detail: receipt.value }),
      done("effect.settled", { run: look.run, pos: 2, to: "CONFIRMED", reason: "observed", ...receipt }),
      done("term.ended", { end: "released", taken: 0 }),
    );
    this.#clock.elapse(200);
    const third = await this.acquire({ run: id }, "worker-b", "free", { reason: "wake" });
    this.#clock.elapse(900);
    await this.write(
      third,
      done("notes.taken", { through: 2 }),
      done("effect.received", { pos: 2, status: "CONFIRMED", ...receipt }),
      done("step.done", { pos: 3, name: "book", value: { entry: 4411n } }),
      done("run.ended", { status: "COMPLETED", outcome: { done: true, receipt: "r-118" }, taken: 2 }),
    );
    await this.#rest(6 * 60_000);
  }

  /** An act whose answer was lost, and a look that decided nothing; `open`: there will be others. */
  async doubt(id: string, { name = "bank.wire", open = false, labels }: DoubtOptions = {}): Promise<void> {
    const order = { invoice: `inv-${id}`, account: "supplier", amount: 1_240 };
    const term = await this.begin(id, "payout", "worker-a", labels && { labels });
    this.#clock.elapse(1_200);
    await this.write(
      term,
      done("step.done", { pos: 0, name: "load invoice", value: order }),
      done("effect.intended", { ...intent(1, order), name, businessKey: order.invoice }),
      done("effect.dispatched", { pos: 1, attempt: 1, sendWithinMs: 10_000 }),
      done("effect.settled", { pos: 1, to: "UNKNOWN", reason: "ack_lost" }),
      done("term.ended", { end: "released", taken: 0 }),
    );
    this.#clock.elapse(5_000);
    const { term: item, run } = await this.#item(id, "worker-b");
    const look = done("effect.observed", { run, pos: 1, observation: "inconclusive", detail: "the bank is closed" });
    if (open) {
      const next = { nextReactor: "reconciler", inMs: 2 * hour };
      await this.write(item, look, done("term.ended", { end: "released", taken: 0, ...next }));
      return;
    }
    await this.write(
      item,
      look,
      done("effect.settled", { run, pos: 1, to: "STUCK", reason: "inconclusive" }),
      done("term.ended", { end: "released", taken: 0 }),
    );
    const again = await this.acquire({ run: id }, "worker-b", "free", { reason: "wake" });
    await this.write(
      again,
      done("notes.taken", { through: 1 }),
      done("run.stuck", { why: `a person must say what became of ${name}`, on: [{ run, pos: 1, sub: 0 }] }),
      done("term.ended", { end: "released", taken: 1 }),
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
      done("term.ended", { end: "released", taken: 0 }),
    );
  }

  async #stuck(): Promise<void> {
    const term = await this.begin("refund-12", "refund", "worker-b");
    await this.write(
      term,
      done("step.done", { pos: 0, name: "load order", value: { order: 12 } }),
      done("run.stuck", { why: "the code asks for step price where the journal has step tax", detail: { pos: 1 } }),
      done("term.ended", { end: "released", taken: 0 }),
    );
  }

  async #failed(): Promise<void> {
    const term = await this.begin("report-9", "report", "worker-b");
    this.#clock.elapse(2_300);
    await this.write(
      term,
      done("step.done", { pos: 0, name: "query", error: { name: "Error", message: "relation sales does not exist" } }),
      done("run.ended", { status: "FAILED", outcome: { error: "relation sales does not exist" }, taken: 0 }),
    );
  }

  /** Owners at work: one run, a singleton, and one that renews but gets nowhere. */
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
    await this.#rest(3 * 60_000);
  }

  /** Text of the user's that would be a deed if anybody read it as markup. */
  async #markup(): Promise<void> {
    const term = await this.begin(`odd ${markup}`, markup, markup, { labels: { odd: markup } });
    await this.write(
      term,
      done("step.done", { pos: 0, name: markup, value: markup }),
      done("gate.opened", { pos: 1, name: markup, payload: { markup } }),
      done("term.ended", { end: "released", taken: 0 }),
    );
    await this.#store.intake.putValue(tenant, markup, markup, "must_create");
  }

  async #around(): Promise<void> {
    const { intake, claim } = this.#store;
    await intake.putValue(tenant, "rates/eur", { usd: 1.17 }, "must_create");
    await intake.putValue(tenant, "rates/eur", { usd: 1.18 }, "unconditional");
    await intake.putValue(tenant, "limits/wire", { daily: 500_000 }, "must_create");
    const when = { cron: "0 6 * * *", timeZone: "UTC", overlap: "skip", catchUp: "latest", windowMs: hour } as const;
    const spec = encodeSchedule({ uid: "u", workflow: "treasury", input: {}, ...when, due: null, last: null });
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

  async begin(id: string, workflow: string, label: string, more: BeginOptions = {}): Promise<Term> {
    const { ttlMs = 60_000, labels, budget } = more;
    const spec = { id, workflow, input: { of: id }, ...(labels && { labels }), ...(budget && { budget }) };
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

  /** The journal of the run's act in doubt, held by its reconciler. */
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
    const answer = await this.#store.claim.acquire(tenant, {
      target,
      claimant,
      nonce,
      expect,
      ...(reason && { reason }),
    });
    if (!answer.ok) throw answer.error;
    return answer.term;
  }
}

interface DoubtOptions {
  readonly name?: string;
  readonly open?: boolean;
  readonly labels?: Readonly<Record<string, string>>;
}

interface BeginOptions {
  readonly ttlMs?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly budget?: Readonly<Record<string, number>>;
}

export const done = (kind: string, data: object): NewRecord => ({ kind, data }) as NewRecord;
const spending = ({ journal }: Term, pos: number, amounts: object): NewRecord[] => [
  done("budget.reserved", { pos, of: journal, amounts }),
  done("budget.charged", { pos: pos + 1, for: pos, of: journal, spent: amounts, reserved: amounts }),
];
const intent = (pos: number, args: object) => ({
  ...{ pos, name: "bank.wire", semantics: "non_idempotent", dispatch: "inline" },
  ...{ key: `key-${pos}`, argsHash: "h", args },
});
