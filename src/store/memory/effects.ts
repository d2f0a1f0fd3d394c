import type { Row } from "../sql/plan.ts";
import {
  changed,
  type Do,
  type DoAs,
  listed,
  none,
  page,
  passes,
  row,
  rows,
  type Statements,
  type Times,
} from "./statement.ts";
import { keyOf } from "./table.ts";
import type { EffectRow, Tables } from "./tables.ts";

/** Obligations that are due and not done. */
export const unsettled: readonly string[] = ["PENDING", "COMMITTED", "UNKNOWN", "STUCK"];

export const effects = {
  "effect.create"(t, p: DoAs<"effect.create">, { at }) {
    const { source, run, pos, sub, role, name, connector, semantics, dispatch, status, authority, item, key } = p;
    const owner = t.runs.get(run);
    if (owner?.tenant !== p.tenant || (source !== run && t.leases.get(source)?.run !== run)) return none;
    if (role !== "compensation" && owner.phase !== "LIVE") return none;
    if (t.effects.get(keyOf(run, pos, sub)) !== undefined) return none;
    t.effects.insert({
      run,
      pos,
      sub,
      tenant: owner.tenant,
      root: owner.root,
      role,
      name,
      connector,
      semantics,
      dispatch,
      status,
      authority,
      item,
      key,
      business_key: p.businessKey,
      args_hash: p.argsHash,
      args: p.args,
      policy: p.policy,
      attempt: 0,
      attempt_token: null,
      attempt_nonce: null,
      send_until: null,
      reason: null,
      outcome: null,
      surplus: p.surplus,
      created_at: at,
      changed_at: at,
    });
    return changed(1);
  },

  "effect.find": (t, p: { tenant: string; run: number; pos: number; sub: number }, times) => {
    const effect = t.effects.get(keyOf(p.run, p.pos, p.sub));
    return row(effect?.tenant === p.tenant ? shown(times)(effect) : undefined);
  },

  "effect.lock": (t, p: { run: number; pos: number; sub: number }) => row(t.effects.get(keyOf(p.run, p.pos, p.sub))),

  "effect.list"(t, p: Listed & { afterRun: number; afterPos: number; afterSub: number }, times) {
    const after = [p.afterRun, p.afterPos, p.afterSub];
    const behind = ({ run, pos, sub }: EffectRow): boolean => {
      const k = [run, pos, sub].findIndex((part, at) => part !== after[at]);
      return k >= 0 && [run, pos, sub][k]! > after[k]!;
    };
    const found = t.effects.by.tenant(p.tenant).filter((effect) => behind(effect) && listing(p, times.at)(effect));
    return rows(page(found, p.limit, runOf, posOf, subOf).map(shown(times)));
  },

  "effect.run"(t, p: Listed & { run: number; from: number }, times) {
    const { at } = times;
    const found = t.effects.by.run(p.run).filter((effect) => effect.pos >= p.from && listing(p, at)(effect));
    return rows(page(found, p.limit, posOf, subOf).map(shown(times)));
  },

  "effect.item"(t, p: Listed & { item: number }, times) {
    const { at } = times;
    const found = t.effects.by.tenant(p.tenant).filter((effect) => effect.item === p.item && listing(p, at)(effect));
    return rows(page(found, p.limit, runOf).map(shown(times)));
  },

  "effect.obligations"(t, p: Omit<Listed, "role"> & { root: number; below: number | null; from: number }, times) {
    const { at } = times;
    const mine = p.below === null ? undefined : new Set(chainsOf(t, p.below));
    const found = t.effects.by
      .root(p.root)
      .filter(listing({ ...p, role: "compensation" }, at))
      .filter((effect) => effect.run >= p.from && (mine === undefined || mine.has(effect)));
    return rows(
      page(
        found,
        p.limit,
        runOf,
        (e) => -posOf(e),
        (e) => -subOf(e),
      ).map(shown(times)),
    );
  },

  "effect.status"(t, p: DoAs<"effect.status">, { at, steady }) {
    const effect = t.effects.get(keyOf(p.run, p.pos, p.sub));
    if (effect?.tenant !== p.tenant || effect.authority !== p.by || !listed(p.from, effect.status)) return none;
    const again = p.to === "PENDING" && effect.semantics === "non_idempotent";
    if (again && p.reason !== "not_sent" && p.reason !== "operator") return none;
    t.effects.update(effect, {
      status: p.to,
      authority: p.hand ?? effect.authority,
      item: p.hand ?? effect.item,
      attempt: p.attempt ?? effect.attempt,
      attempt_token: p.token ?? effect.attempt_token,
      attempt_nonce: p.nonce ?? effect.attempt_nonce,
      send_until: p.sendInMs === null ? effect.send_until : steady + p.sendInMs,
      reason: p.reason ?? effect.reason,
      outcome: p.outcome ?? effect.outcome,
      changed_at: at,
    });
    return changed(1);
  },

  "effects.withdraw"(t, p: Do<"effects.withdraw">, { at }) {
    const found = t.effects.by.run(p.run).filter(({ role, status }) => role === "effect" && status === "PENDING");
    return changed(t.effects.updateAll(found, { status: "WITHDRAWN", changed_at: at }));
  },

  "items.sweep"(t, p: Do<"items.sweep">) {
    const withdrawn = t.effects.by.run(p.run).filter(({ status }) => status === "WITHDRAWN");
    return changed(t.leases.updateAll(freeItems(t, withdrawn), { next_reactor: null }));
  },

  "obligations.make_due"(t, p: Do<"obligations.make_due">, { at }) {
    const { run, pos, sub } = p;
    const concerned =
      pos === null ? ofTree(t, run) : t.effects.by.run(run).filter((e) => e.pos === pos && e.sub === sub);
    const found = concerned.filter(({ role, status }) => role === "compensation" && status === "ARMED");
    return changed(t.effects.updateAll(found, { status: "PENDING", changed_at: at }));
  },

  "obligations.release_next"(t, p: Do<"obligations.release_next">, { now }) {
    const chain = chainsOf(t, p.run);
    const newer = (a: EffectRow, b: EffectRow): boolean =>
      a.run === b.run && (a.pos > b.pos || (a.pos === b.pos && a.sub > b.sub));
    const next = chain.filter(
      (effect) =>
        effect.status === "PENDING" && !chain.some((other) => newer(other, effect) && unsettled.includes(other.status)),
    );
    const waiting = freeItems(t, next).filter(({ next_reactor }) => next_reactor === null);
    return changed(t.leases.updateAll(waiting, { next_reactor: "compensation", due_at: now }));
  },

  "obligations.discharge"(t, p: Do<"obligations.discharge">, { at }) {
    const found = t.effects.by.root(p.run).filter(({ role, status }) => role === "compensation" && status === "ARMED");
    return changed(t.effects.updateAll(found, { status: "DISCHARGED", changed_at: at }));
  },
} satisfies Statements;

/** The run's own and those of everything below it. */
function ofTree(t: Tables, run: number): readonly EffectRow[] {
  const below = t.runs.by.parent(run).flatMap(({ journal }) => ofTree(t, journal));
  return [...t.effects.by.run(run), ...below];
}

/** The obligations of the run and of everything below it; surplus ones stand outside the chain. */
export function chainsOf(t: Tables, run: number): readonly EffectRow[] {
  return ofTree(t, run).filter(({ role, surplus }) => role === "compensation" && !surplus);
}

/** The item leases of these effects that nobody holds. */
function freeItems(t: Tables, found: readonly EffectRow[]) {
  return found
    .map(({ item }) => (item === null ? undefined : t.leases.get(item)))
    .filter((lease) => lease !== undefined)
    .filter(({ owner }) => owner === null);
}

export interface Listed {
  readonly tenant: string;
  readonly role: string | null;
  readonly status: string | null;
  readonly minAgeMs: number | null;
  readonly limit: number;
}

const listing =
  (p: Listed, at: number) =>
  ({ tenant, role, status, changed_at }: EffectRow): boolean =>
    tenant === p.tenant &&
    passes(p.role, role) &&
    (p.status === null || listed(p.status, status)) &&
    (p.minAgeMs === null || changed_at <= at - p.minAgeMs);

const shown =
  ({ at, steady }: Times) =>
  (effect: EffectRow): Row => {
    const { attempt_token: token, attempt_nonce: nonce, send_until } = effect;
    return {
      ...effect,
      attempt_token: token === null ? null : String(token),
      attempt_nonce: nonce === null ? null : String(nonce),
      send_until: send_until === null ? null : send_until + at - steady,
    };
  };

const runOf = (effect: EffectRow): number => effect.run;
const posOf = (effect: EffectRow): number => effect.pos;
const subOf = (effect: EffectRow): number => effect.sub;
