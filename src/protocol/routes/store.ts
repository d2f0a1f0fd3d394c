import { z } from "zod";
import { termReasons } from "../../model/records.ts";
import { group } from "../route.ts";
import {
  big,
  claimant,
  entry,
  fence,
  journal,
  name,
  record,
  refused,
  target,
  value,
  verdict,
  wake,
  whole,
} from "../shapes.ts";
import { created, dueTimer, leaseView, runProgress, runSpec, scheduleRow, term, termView } from "../views.ts";

/**
 * The store's contract for whoever drives runs and runs reactors elsewhere. The fence travels with every write, and the
 * store behind the server compares it exactly as for an embedded writer: the server adds who may call, nothing else.
 */
export const store = group({
  "store.create": {
    method: "POST",
    path: "/v1/store/create",
    role: "worker",
    repeat: "same",
    summary:
      "Creates runs, for many callers in one; with first a caller holds their first terms from the same transaction",
    body: z.strictObject({
      calls: z
        .array(
          z.strictObject({
            specs: z.array(runSpec),
            first: z.strictObject({ ...claimant.shape, nonce: big }).exactOptional(),
          }),
        )
        .min(1),
    }),
    answer: z.strictObject({ calls: z.array(z.strictObject({ verdicts: z.array(verdict(created)) })) }),
  },
  "store.append": {
    method: "POST",
    path: "/v1/store/append",
    role: "worker",
    repeat: "same",
    summary: "Appends to many journals in one call: each write with its own fence and its own verdict, sharing commits",
    body: z.strictObject({ batch: z.array(z.strictObject({ fence, entry })).min(1) }),
    answer: z.strictObject({ verdicts: z.array(verdict({ head: whole, notes: whole })) }),
  },
  "store.find": {
    method: "POST",
    path: "/v1/store/find",
    role: "worker",
    repeat: "same",
    summary: "Acquires work that waits for a reactor or was abandoned; the nonce names the look",
    body: z.strictObject({
      claimant,
      wants: name,
      staleOf: z.array(name),
      staleLimit: whole.exactOptional(),
      limit: z.int().positive(),
      nonce: big,
      workflows: z.array(name).exactOptional(),
      ahead: z.strictObject({ withinMs: whole, limit: whole }).exactOptional(),
    }),
    answer: z.strictObject({ terms: z.array(term) }),
  },
  "store.acquire": {
    method: "POST",
    path: "/v1/store/acquire",
    role: "worker",
    repeat: "same",
    summary: "Acquires one lease, if it is as expected; the nonce names the attempt",
    body: z.strictObject({
      target,
      claimant,
      nonce: big,
      expect: z.union([
        z.enum(["free", "expired", "free_or_expired", "any"]),
        z.strictObject({ owner: z.string().nullable(), token: big }),
      ]),
      reason: z.enum(termReasons).exactOptional(),
      by: name.exactOptional(),
      why: name.exactOptional(),
    }),
    answer: z.discriminatedUnion("ok", [
      z.strictObject({ ok: z.literal(true), term }),
      z.strictObject({ ...refused.shape, holder: leaseView.exactOptional() }),
    ]),
  },
  "store.renew": {
    method: "POST",
    path: "/v1/store/renew",
    role: "worker",
    repeat: "same",
    summary: "Renews all leases of a process in one call",
    body: z.strictObject({
      renewals: z.array(z.strictObject({ fence, progress: whole, progressNote: z.string().exactOptional() })),
    }),
    answer: z.strictObject({ verdicts: z.array(verdict({ notes: whole, ttlMs: z.number() })) }),
  },
  "store.evidence": {
    method: "POST",
    path: "/v1/store/evidence",
    role: "worker",
    repeat: "key",
    summary: "Leaves what a fenced-out owner learnt from the world",
    body: z.strictObject({
      attempt: z.strictObject({ run: journal, pos: whole, sub: whole.exactOptional(), token: big, nonce: big }),
      evidence: z.strictObject({ happened: z.boolean(), value: value.exactOptional(), error: value.exactOptional() }),
    }),
    answer: z.strictObject({ journal, n: whole }),
  },
  "store.fireTimer": {
    method: "POST",
    path: "/v1/store/timers/fire",
    role: "worker",
    repeat: "key",
    summary: "Fires a timer that is due; true for the one caller that did",
    body: z.strictObject({ run: journal, pos: whole, purpose: name }),
    answer: z.strictObject({ fired: z.boolean() }),
  },
  "store.dueTimers": {
    method: "POST",
    path: "/v1/store/timers/due",
    role: "worker",
    repeat: "read",
    summary: "Timers whose time has come",
    body: z.strictObject({ limit: z.int().positive() }),
    answer: z.strictObject({ timers: z.array(dueTimer) }),
  },
  "store.fireSchedule": {
    method: "POST",
    path: "/v1/store/schedules/fire",
    role: "worker",
    repeat: "key",
    summary: "Advances a schedule and starts the runs of this firing, in one transaction",
    body: z.strictObject({
      id: name,
      version: z.int().positive(),
      nextAt: z.number().nullable(),
      runs: z.array(runSpec),
      spec: z.strictObject({ from: z.string(), to: z.string() }).exactOptional(),
    }),
    answer: z.strictObject({ fired: z.boolean() }),
  },
  "store.dueSchedules": {
    method: "POST",
    path: "/v1/store/schedules/due",
    role: "worker",
    repeat: "read",
    summary: "Schedules that are due",
    body: z.strictObject({ limit: z.int().positive() }),
    answer: z.strictObject({ schedules: z.array(scheduleRow) }),
  },
  "store.agenda": {
    method: "POST",
    path: "/v1/store/agenda",
    role: "worker",
    repeat: "read",
    summary: "When there is next something to do, for whom: all that an idle process asks",
    body: z.strictObject({}),
    answer: z.strictObject({
      items: z.array(z.strictObject({ reactor: z.string().optional(), inMs: z.number(), lateMs: z.number() })),
    }),
  },
  "store.unserved": {
    method: "POST",
    path: "/v1/store/unserved",
    role: "worker",
    repeat: "read",
    summary: "Workflows whose runs wait for somebody who serves them, beside those that the caller serves",
    body: z.strictObject({ workflows: z.array(name), minLagMs: whole }),
    answer: z.strictObject({
      unserved: z.array(z.strictObject({ workflow: name, runs: whole, lagMs: z.number() })),
    }),
  },
  "store.progress": {
    method: "POST",
    path: "/v1/store/progress",
    role: "reader",
    repeat: "read",
    summary: "How far many runs have come, in one look",
    body: z.strictObject({ ids: z.array(name) }),
    answer: z.strictObject({ runs: z.array(runProgress) }),
  },
  "store.journal": {
    method: "POST",
    path: "/v1/store/journal",
    role: "reader",
    repeat: "read",
    summary: "Records of any journal of the tenant: of a run, an item or a named lease",
    body: z.strictObject({
      target,
      from: whole.exactOptional(),
      limit: z.int().positive().exactOptional(),
      inbox: z.boolean().exactOptional(),
    }),
    answer: z.strictObject({ records: z.array(record) }),
  },
  "store.lease": {
    method: "POST",
    path: "/v1/store/lease",
    role: "reader",
    repeat: "read",
    summary: "The lease of any journal",
    body: z.strictObject({ target }),
    answer: z.strictObject({ lease: leaseView.optional() }),
  },
  "store.terms": {
    method: "POST",
    path: "/v1/store/terms",
    role: "reader",
    repeat: "read",
    summary: "The ledger of any journal",
    body: z.strictObject({ target }),
    answer: z.strictObject({ terms: z.array(termView) }),
  },
  "store.wakes": {
    method: "GET",
    path: "/v1/store/wakes",
    role: "reader",
    repeat: "read",
    summary: "Hints that something may be worth a look, one a line; lossy",
    answer: wake,
    stream: true,
  },
});
