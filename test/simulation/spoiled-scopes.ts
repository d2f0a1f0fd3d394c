import type { Evidence } from "../../simulation/evidence.ts";
import type { Plan } from "../../simulation/plan.ts";
import { scoper } from "../../simulation/plan-scopes.ts";
import type { Op } from "../../simulation/program.ts";
import type { ScopeOp } from "../../simulation/scope-work.ts";
import type { FeedRecord } from "../../src/store/contract/store.ts";
import { calm } from "./calm.ts";

const effect = (id: string, answerMs: number): Op => ({
  ...{ op: "effect", effect: "compensable.inline", caught: false },
  args: {
    ...{ id, businessKey: id, faults: [], compensateFaults: [], unresponsive: false, observations: [] },
    ...{ travelMs: 20, answerMs },
  },
});

const scope = (kind: ScopeOp["kind"], ops: readonly Op[], more: Partial<ScopeOp<Op>> = {}): ScopeOp<Op> => ({
  ...{ op: "scope", kind, name: `${kind} 1`, ops, timeoutMs: undefined, cancelMs: undefined },
  ...more,
});

const rest: Op = { op: "sleep", ms: 4_000 };
const without = { signals: [], schedules: [], actions: [], guarded: [], unstarted: undefined, talk: undefined };
const ops = (inside: readonly string[]): readonly Op[] => [
  effect("before", 40),
  scope("saga", [...inside.map((id) => effect(id, 40)), { op: "fail" }]),
  scope("timeout", [effect("slow", 3_000)], { timeoutMs: 900 }),
  scope("scope", [{ op: "detached", ops: [rest, { op: "step", fails: false }] }, rest], { cancelMs: 40 }),
];
const planned = (inside: readonly string[]): Plan => ({
  ...{ ...calm, ...without },
  runs: [{ ...calm.runs[0]!, id: scoper, program: { ops: ops(inside), attempts: 1 } }],
});

/** A failed saga, a time-out during an effect, and a scope that is cancelled after it started a detached run. */
export const scopedWorld: Plan = planned(["first", "second"]);

const journalOf = ({ runs }: Evidence): number => runs.find(({ id }) => id === scoper)!.journal;
const withoutKind =
  (kind: FeedRecord["kind"]) =>
  (world: Evidence): Evidence => ({ ...world, feed: world.feed.filter((one) => one.kind !== kind) });
const sights = (world: Evidence, change: (one: Evidence["scopeSights"][number]) => object): Evidence => ({
  ...world,
  scopeSights: world.scopeSights.map((one) => ({ ...one, ...change(one) })),
});
const detached = (world: Evidence, more: object): Evidence => ({
  ...world,
  runs: world.runs.map((one) => (one.id === scoper ? one : { ...one, ...more })),
});
const owed = (world: Evidence, pos: number, status: "ARMED" | "COMPENSATED"): Evidence => ({
  ...world,
  effects: world.effects.map((row) =>
    row.role === "compensation" && row.run === journalOf(world) && row.pos === pos ? { ...row, status } : row,
  ),
});
/** The position of the first effect of the saga: after the effect before, the saga and its first step. */
const first = 3;

/** What is changed in the evidence, by the invariant that must fail then. */
export const spoiledScopes: readonly (readonly [what: string, name: string, spoil: (world: Evidence) => Evidence])[] = [
  ["ends of scopes have no record", "scopesAgree", withoutKind("scope.closed")],
  [
    "a replay sees something else",
    "scopesAgree",
    (world) => ({ ...world, scopeSights: [...world.scopeSights, { ...world.scopeSights[0]!, outcome: "x" }] }),
  ],
  [
    "a scope is refused for another reason",
    "scopesAgree",
    (world) => sights(world, ({ refusedBy }) => (refusedBy ? { refusedBy: { ...refusedBy, reason: "done" } } : {})),
  ],
  [
    "a sent effect counts as withdrawn",
    "scopesAgree",
    (world) => sights(world, ({ effect: one }) => (one ? { effect: { ...one, sent: false } } : {})),
  ],
  ["an effect outside is compensated", "sagaCompensatesExactly", (world) => ({ ...world, plan: planned(["first"]) })],
  ["an effect inside is not compensated", "sagaCompensatesExactly", (world) => owed(world, first, "ARMED")],
  ["the saga does not say that it is compensated", "sagaCompensatesExactly", withoutKind("saga.compensated")],
  ["a saga that returned compensates", "sagaCompensatesExactly", (world) => sights(world, () => ({ threw: false }))],
  ["a saga of a completed run left something", "compensatedExactly", (world) => owed(world, first, "ARMED")],
  ["what came before a saga is compensated", "compensatedExactly", (world) => owed(world, 0, "COMPENSATED")],
  ["a detached run has a parent", "detachedLives", (world) => detached(world, { parent: journalOf(world) })],
  ["a detached run is cancelled", "detachedLives", (world) => detached(world, { status: "CANCELLED" })],
  ["the starter knows of no detached run", "detachedLives", withoutKind("child.started")],
];
