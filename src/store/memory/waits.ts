import { limited } from "./quotas.ts";
import { changed, compare, type Do, none, page, present, row, rows, type Statements, type Times } from "./statement.ts";
import { keyOf } from "./table.ts";
import type { GateRow, TimerRow } from "./tables.ts";

type Listing = { readonly tenant: string; readonly limit: number };
type GateListing = Listing & { readonly afterAt: number; readonly afterRun: number; readonly afterPos: number };
type Timer = { readonly run: number; readonly pos: number; readonly purpose: string };
type Schedule = { readonly tenant: string; readonly id: string; readonly nextAt: number | null };
type Written = Schedule & { readonly spec: string; readonly paused: boolean };
type Seen = { readonly version: number; readonly seen: string | null };

/** By time, then by key as SQLite finds them: with a limit, ties must not be a matter of luck. */
const byDue = [
  (timer: TimerRow) => timer.due_at,
  (timer: TimerRow) => timer.run,
  (timer: TimerRow) => timer.pos,
  (timer: TimerRow) => timer.purpose,
] as const;

const byOpening = [
  (gate: GateRow) => gate.opened_at,
  (gate: GateRow) => gate.run,
  (gate: GateRow) => gate.pos,
] as const;

const behind =
  ({ afterAt, afterRun, afterPos }: GateListing) =>
  (gate: GateRow): boolean =>
    compare(gate.opened_at, afterAt) > 0 ||
    (gate.opened_at === afterAt && (gate.run > afterRun || (gate.run === afterRun && gate.pos > afterPos)));

/** Gates, timers and schedules. */
export const waits = {
  "gate.create"(t, p: Do<"gate.create">, { at }) {
    const { run, pos, name, binds, payload, approvers } = p;
    const owner = t.runs.get(run);
    if (owner?.phase !== "LIVE" || t.gates.get(keyOf(run, pos)) !== undefined) return none;
    const { tenant } = owner;
    const open = { status: "OPEN" as const, value: null, opened_at: at, approvals: "," };
    t.gates.insert({ run, pos, tenant, name, binds, payload, approvers, ...open });
    return changed(1);
  },

  "gate.status"(t, p: Do<"gate.status">) {
    const gate = t.gates.get(keyOf(p.run, p.pos));
    if (gate?.status !== "OPEN") return none;
    const open = gate.approvers === null || p.to !== "RECEIVED" || gate.approvals.includes(`,${p.note},`);
    if (!open) return none;
    t.gates.update(gate, { status: p.to, value: p.value });
    return changed(1);
  },

  "gates.withdraw"(t, p: Do<"gates.withdraw">) {
    const open = t.gates.by.run(p.run).filter(({ status }) => status === "OPEN");
    return changed(t.gates.updateAll(open, { status: "WITHDRAWN" }));
  },

  "signal.find"(t, p: { tenant: string; id: string; name: string }) {
    const [run] = t.runs.by.id(keyOf(p.tenant, p.id));
    if (run === undefined) return none;
    const open = t.gates.by.run(run.journal).filter(({ name, status }) => name === p.name && status === "OPEN");
    return row({ ...run, restricted: open.some(({ approvers }) => approvers !== null) });
  },

  "gate.waiting": (t, p: { run: number; name: string }) =>
    rows(
      page(
        t.gates.by.run(p.run).filter(({ name, status }) => name === p.name && status === "OPEN"),
        Number.POSITIVE_INFINITY,
        ({ pos }) => pos,
      ),
    ),

  "gate.approve"(t, p: { run: number; pos: number; note: string }) {
    const gate = t.gates.get(keyOf(p.run, p.pos))!;
    t.gates.update(gate, { approvals: `${gate.approvals}${p.note},` });
    return changed(1);
  },

  "gate.list": (t, p: GateListing) => rows(page(t.gates.by.tenant(p.tenant).filter(behind(p)), p.limit, ...byOpening)),

  "gate.open": (t, p: GateListing) =>
    rows(
      page(
        t.gates.by.tenant(p.tenant).filter((gate) => gate.status === "OPEN" && behind(p)(gate)),
        p.limit,
        ...byOpening,
      ),
    ),

  "gate.run"(t, p: GateListing & { run: number; open: boolean }) {
    const found = t.gates.by
      .run(p.run)
      .filter((gate) => gate.tenant === p.tenant && (!p.open || gate.status === "OPEN") && behind(p)(gate));
    return rows(page(found, p.limit, ...byOpening));
  },

  "timer.create"(t, p: Do<"timer.create">, times) {
    const { run, pos, purpose, inMs, until } = p;
    const owner = t.runs.get(run);
    if (owner === undefined || t.timers.get(keyOf(run, pos, purpose)) !== undefined) return none;
    const steady = until === null;
    const due_at = until ?? times.steady + inMs;
    t.timers.insert({ run, pos, purpose, tenant: owner.tenant, status: "SET", due_at, steady });
    return changed(1);
  },

  "timer.status"(t, p: Do<"timer.status">) {
    const timer = t.timers.get(keyOf(p.run, p.pos, p.purpose));
    if (timer?.status !== "SET") return none;
    t.timers.update(timer, { status: p.to });
    return changed(1);
  },

  "timer.fire"(t, p: Timer & { readonly tenant: string }, times) {
    const timer = t.timers.get(keyOf(p.run, p.pos, p.purpose));
    if (timer?.status !== "SET" || timer.tenant !== p.tenant || lateMs(timer, times) < 0) return none;
    t.timers.update(timer, { status: "FIRED" });
    return changed(1);
  },

  "timers.cancel"(t, p: Do<"timers.cancel">) {
    const set = t.timers.by.run(p.run).filter(({ status }) => status === "SET");
    return changed(t.timers.updateAll(set, { status: "CANCELLED" }));
  },

  "timer.list": (t, p: Listing, times) => rows(page(dated(t.timers.by.tenant(p.tenant), times), p.limit, ...byDue)),

  "timer.run"(t, p: Listing & { run: number }, times) {
    const found = t.timers.by.run(p.run).filter(({ tenant }) => tenant === p.tenant);
    return rows(page(dated(found, times), p.limit, ...byDue));
  },

  "timer.due"(t, p: Listing, times) {
    const due = t.timers.by
      .set(p.tenant)
      .map((timer) => ({ ...timer, late_ms: lateMs(timer, times), due_at: times.at - lateMs(timer, times) }))
      .filter(({ late_ms }) => late_ms >= 0);
    return rows(page(due, p.limit, ...byDue));
  },

  "schedule.put"(t, p: Written & { fresh: boolean; admitted: boolean }) {
    const { tenant, id, spec, paused, nextAt: next_at } = p;
    const before = t.schedules.get(keyOf(tenant, id));
    if (before === undefined && !p.admitted && limited(t, tenant, ({ schedules }) => schedules)) return none;
    if (before === undefined) return row(t.schedules.insert({ tenant, id, version: 1, spec, next_at, paused }));
    if (p.fresh) return none;
    return row(t.schedules.update(before, { version: before.version + 1, spec, next_at, paused }));
  },

  "schedule.change"(t, p: Written & Seen) {
    const { spec, paused, nextAt: next_at, version, seen } = p;
    const before = t.schedules.get(keyOf(p.tenant, p.id));
    if (before === undefined || before.version !== version || before.spec !== seen) return none;
    return row(t.schedules.update(before, { version: version + 1, spec, next_at, paused }));
  },

  "schedule.fire"(t, p: Schedule & Seen & { spec: string | null }, { at }) {
    const schedule = t.schedules.get(keyOf(p.tenant, p.id));
    if (schedule === undefined || schedule.version !== p.version || schedule.paused) return none;
    if (schedule.next_at === null || schedule.next_at > at) return none;
    if (p.seen !== null && p.seen !== schedule.spec) return none;
    const { version, spec } = schedule;
    t.schedules.update(schedule, { version: version + 1, next_at: p.nextAt, spec: p.spec ?? spec });
    return changed(1);
  },

  "schedule.count": (t, p: { tenant: string }) => row({ n: t.schedules.by.tenant(p.tenant).length }),
  "schedule.find": (t, p: { tenant: string; id: string }) => row(t.schedules.get(keyOf(p.tenant, p.id))),

  "schedule.delete": (t, p: { tenant: string; id: string }) =>
    changed(t.schedules.deleteAll(present(t.schedules.get(keyOf(p.tenant, p.id))))),

  "schedule.list"(t, p: { tenant: string; above: string; limit: number }) {
    const found = t.schedules.by.tenant(p.tenant).filter(({ id }) => compare(id, p.above) > 0);
    return rows(page(found, p.limit, ({ id }) => id));
  },

  "schedule.due"(t, p: Listing, { at }) {
    const due = t.schedules.by
      .tenant(p.tenant)
      .filter(({ next_at, paused }) => next_at !== null && next_at <= at && !paused);
    return rows(
      page(
        due,
        p.limit,
        ({ next_at }) => next_at!,
        ({ id }) => id,
      ),
    );
  },
} satisfies Statements;

/** Every timer's time as a date. */
const dated = (timers: readonly TimerRow[], times: Times): TimerRow[] =>
  timers.map((timer) => ({ ...timer, due_at: times.at - lateMs(timer, times) }));

/** By the clock that the timer counts by; negative: not yet. */
export const lateMs = ({ steady, due_at }: TimerRow, times: Times): number =>
  (steady ? times.steady : times.at) - due_at;
