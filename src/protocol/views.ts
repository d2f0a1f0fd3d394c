import { z } from "zod";
import { credential } from "../model/credential.ts";
import { letterStates } from "../model/dead-letter.ts";
import type { Term } from "../model/lease.ts";
import { effectMachine, gateMachine, obligationMachine, runMachine, timerMachine } from "../model/machines.ts";
import { slotStates } from "../model/queue.ts";
import { termEnds, termReasons } from "../model/records.ts";
import { sinkStates } from "../model/sink-state.ts";
import {
  amounts,
  big,
  buildName,
  fence,
  fenceOf,
  journal,
  labels,
  maxItems,
  ms,
  name,
  reportedLabels,
  startFields,
  text,
  value,
  whole,
} from "./shapes.ts";

/** The views for readers, on the wire. Their types are those of the model and of the store's contract. */

/** A column with the codec's text is sent as JSON. */
const stored = z.codec(z.unknown(), z.string(), {
  decode: (given) => JSON.stringify(given),
  encode: (held): unknown => JSON.parse(held),
});

const at = z.number();
const journalKind = z.enum(["run", "item", "name", "store"]);
const reason = z.enum(termReasons);
export const runStatus = z.enum([
  "QUEUED",
  "RUNNABLE",
  "RUNNING",
  "WAITING",
  ...runMachine.states.filter((state) => state !== "LIVE"),
]);

export const leaseView = z.strictObject({
  journal,
  kind: journalKind,
  tenant: name,
  run: journal,
  name: z.string().nullable(),
  state: z.enum(["FREE", "HELD", "EXPIRED", "DOOMED"]),
  token: big,
  owner: z.string().nullable(),
  label: z.string().nullable(),
  reactor: z.string().nullable(),
  ttlMs: ms,
  remainingMs: ms,
  heldMs: z.number(),
  reason: reason.nullable(),
  renewals: whole,
  longestGapMs: z.number(),
  progress: whole,
  progressAgoMs: z.number(),
  progressNote: z.string().nullable(),
  maxStallMs: z.number().nullable(),
  paused: z.boolean(),
  nextReactor: z.string().nullable(),
  queue: z.string().nullable(),
  slot: z.enum(slotStates).nullable(),
  checkpoint: z.string().exactOptional(),
  build: z.string().exactOptional(),
  begins: journal.exactOptional(),
});

/** Why a run failed or was cancelled, in short. */
const runError = z.strictObject({ name: z.string(), message: z.string(), code: z.string().exactOptional() });

export const runView = z.strictObject({
  journal,
  tenant: name,
  id: name,
  workflow: name,
  version: z.string().nullable(),
  status: runStatus,
  cause: z.string().nullable(),
  stuckFrom: z.string().nullable(),
  inputHash: z.string(),
  labels: reportedLabels,
  outcome: value,
  error: runError.exactOptional(),
  erased: z.literal(true).exactOptional(),
  parent: z.int().nullable(),
  root: z.int(),
  createdAt: at,
  endedAt: at.nullable(),
  notes: whole,
  lease: leaseView,
});

export const runProgress = z.strictObject({
  id: name,
  journal,
  workflow: name,
  status: runStatus,
  outcome: value,
  error: runError.exactOptional(),
  ended: z.boolean(),
  idle: z.boolean(),
});

const wireTerm = z.strictObject({
  fence,
  journal,
  kind: journalKind,
  tenant: name,
  run: journal,
  ttlMs: ms,
  head: whole,
  notes: whole,
  reason,
  takenFrom: z.string().exactOptional(),
  lagMs: z.number().exactOptional(),
  name: z.string().exactOptional(),
  preloaded: z.boolean().exactOptional(),
  callee: z.string().exactOptional(),
  queue: z.string().exactOptional(),
  created: z.string().exactOptional(),
  checkpoint: z.string().exactOptional(),
  begins: journal.exactOptional(),
});

const letter = { journal, seq: whole, inbox: z.boolean(), kind: name, attempts: whole };
/** An event that a sink refused: as it is stored, and as it is listed. */
export const newLetter = z.strictObject({ ...letter, event: name, code: name, error: text });
export const deadLetter = z.strictObject({
  ...letter,
  ...{ sink: z.string(), event: z.string(), code: z.string(), error: z.string() },
  ...{ at, state: z.enum(letterStates) },
});

export const sinkRow = z.strictObject({
  ...{ sink: z.string(), lease: leaseView, state: z.enum(sinkStates), lagMs: z.number() },
  passedAt: at.exactOptional(),
  paused: z.strictObject({ by: z.string(), reason: z.string(), at }).exactOptional(),
  ...{ openLetters: whole, keptRuns: whole },
});

export const subject = z.strictObject({
  journal,
  kind: journalKind,
  name: z.string().exactOptional(),
  run: z
    .strictObject({
      ...{ id: z.string(), workflow: z.string(), version: z.string().nullable(), labels: reportedLabels },
      ...{ root: z.string(), parent: z.string().nullable() },
    })
    .exactOptional(),
  item: z.strictObject({ pos: whole, sub: whole, name: z.string().nullable() }).exactOptional(),
});

/** A term; its fence gets the term's tenant. */
export const term = z.codec(
  wireTerm,
  z.custom<Term>((held) => typeof held === "object" && held !== null && "fence" in held),
  {
    decode: (given): Term => ({ ...given, fence: fenceOf(given.tenant, given.fence) }),
    encode: (held) => ({ ...held }),
  },
);

export const termView = z.strictObject({
  token: big,
  owner: z.string(),
  label: z.string(),
  reactor: z.string(),
  startedAt: at,
  startReason: reason,
  by: z.string().exactOptional(),
  auditReason: z.string().exactOptional(),
  endedAt: at.exactOptional(),
  endReason: z.enum(termEnds).exactOptional(),
  renewals: whole,
  longestGapMs: z.number(),
  progress: whole,
  progressNote: z.string().exactOptional(),
});

export const effectRow = z.strictObject({
  run: journal,
  pos: whole,
  sub: whole,
  tenant: name,
  root: z.int(),
  role: z.enum(["effect", "compensation"]),
  name: z.string().nullable(),
  connector: z.string().nullable(),
  semantics: z.enum(["idempotent", "non_idempotent", "read"]),
  dispatch: z.enum(["inline", "outbox"]),
  status: z.enum([...new Set([...effectMachine.states, ...obligationMachine.states])]),
  authority: z.int(),
  item: z.int().nullable(),
  key: z.string(),
  businessKey: z.string().nullable(),
  argsHash: z.string().nullable(),
  args: stored,
  policy: stored.nullable(),
  attempt: whole,
  attemptToken: big.nullable(),
  sendUntil: at.nullable(),
  reason: z.string().nullable(),
  outcome: stored.nullable(),
  surplus: z.boolean(),
  uncertain: z.boolean(),
  createdAt: at,
  changedAt: at,
});

export const gateRow = z.strictObject({
  run: journal,
  pos: whole,
  tenant: name,
  name: z.string(),
  status: z.enum(gateMachine.states),
  binds: z.string().nullable(),
  payload: stored.nullable(),
  approvers: stored.nullable(),
  callback: z.enum(["json", "raw"]).exactOptional(),
  value: stored.nullable(),
  openedAt: at,
});

export const publishedValue = z.strictObject({ name: z.string(), value, seq: whole, at });

const place = { offset: whole, part: whole, at };
/** A chunk of a stream, or the mark that its part starts again. */
export const chunk = z.union([
  z.strictObject({ ...place, rewound: z.literal(true) }),
  z.strictObject({ ...place, value: value.exactOptional() }),
]);

export const streamView = z.strictObject({
  ...{ name: z.string(), next: whole, bytes: whole, at },
  retainMs: whole.exactOptional(),
});

export const reply = z.strictObject({
  n: whole,
  at,
  value: value.exactOptional(),
  error: value.exactOptional(),
  refused: z.string().exactOptional(),
});

export const timerRow = z.strictObject({
  run: journal,
  pos: whole,
  purpose: z.string(),
  tenant: name,
  status: z.enum(timerMachine.states),
  dueAt: at,
});
export const dueTimer = z.strictObject({ ...timerRow.shape, lateMs: z.number() });

export const budgetRow = z.strictObject({
  run: journal,
  unit: name,
  cap: whole.nullable(),
  reserved: whole,
  spent: whole,
});

export const businessKeyRow = z.strictObject({
  tenant: name,
  scope: name,
  businessKey: name,
  run: journal,
  pos: z.int(), // -1: the key of a start
  runId: name,
});

export const valueView = z.strictObject({ key: name, version: whole, value, deleted: z.boolean(), at });

export const scheduleRow = z.strictObject({
  tenant: name,
  id: name,
  version: whole,
  spec: z.string(),
  nextAt: at.nullable(),
  paused: z.boolean(),
});

/** A position in each lane; a run has at most `maxItems` lanes. */
const lanePositions = z.array(whole).max(maxItems).optional();

export const runSpec = z.strictObject({
  id: name,
  workflow: name,
  version: text.exactOptional(),
  input: value,
  labels: labels.exactOptional(),
  budget: amounts.exactOptional(),
  schedule: name.exactOptional(),
  starters: z.array(name).max(64).exactOptional(),
  forkedFrom: name.exactOptional(),
  checked: z.literal(true).exactOptional(),
  build: buildName.exactOptional(),
  ...startFields,
  fork: z
    .strictObject({
      journal,
      pos: whole,
      through: whole,
      by: name,
      via: credential.exactOptional(),
      reason: name,
      seeds: z.array(z.strictObject({ before: whole, run: name, lanes: lanePositions })).max(maxItems),
      lanes: lanePositions,
    })
    .exactOptional(),
});

/** A run that a schedule starts: never a fork, and no caller chooses its starter. */
export const scheduledRun = runSpec.omit({
  ...{ fork: true, forkedFrom: true, starters: true, checked: true, build: true },
  signals: true,
});

export const created = { journal, fresh: z.boolean(), run: name.exactOptional(), term: term.exactOptional() };

/** The state of the store: its schema, its epoch, and whether a power failure can lose acknowledged writes. */
export const settings = z.strictObject({
  schema: whole,
  epoch: whole,
  durable: z.boolean(),
  facts: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
});
