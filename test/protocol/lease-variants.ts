/** The scenarios in which the lease protocol is verified, and the bugs that they must detect. */
import type { Variant } from "./explore.ts";
import type { Rules } from "./lease-model.ts";
import type { Ration, Scenario } from "./lease-state.ts";

const ration = (some: Partial<Ration>): Ration => ({
  expiry: 0,
  crash: 0,
  lost: 0,
  preempt: 0,
  release: 0,
  rewind: 0,
  ...some,
});

/** "a1" and "a2" share a host name: a process restarts while the old one is only paused. */
export const namesakes: Scenario = {
  workers: ["a1", "a2", "b"],
  records: 3,
  ration: ration({ expiry: 2, crash: 1, lost: 1 }),
};
export const handOver: Scenario = {
  workers: ["a1", "a2", "b"],
  records: 2,
  ration: ration({ expiry: 1, preempt: 1, release: 1 }),
};
/** All faults of processes, the wire and an operator, with fewer workers to keep the model small. */
export const everything: Scenario = {
  workers: ["a1", "a2"],
  records: 2,
  ration: ration({ expiry: 1, crash: 1, lost: 1, preempt: 1, release: 1 }),
};
export const restored: Scenario = {
  workers: ["a1", "a2", "b"],
  records: 3,
  ration: ration({ expiry: 1, crash: 1, rewind: 1 }),
};
export const restoredWithLostResponses: Scenario = {
  workers: ["a", "b"],
  records: 2,
  ration: ration({ expiry: 1, lost: 1, release: 1, rewind: 1 }),
};

export interface LeaseVariant extends Variant<Partial<Rules>> {
  readonly scenario: Scenario;
}

export const LEASE_VARIANTS: readonly LeaseVariant[] = [
  {
    name: "no fence",
    rules: { fence: "none" },
    scenario: namesakes,
    breaks: "a record carries the token current at its commit",
    ends: ["a1 acquires", "clock expires a late holder", "a2 acquires", "a1 appends"],
  },
  {
    name: "no fence, and the store numbers the records",
    rules: { fence: "none", predecessor: "numbered by the store" },
    scenario: { ...namesakes, ration: ration({ expiry: 1 }) },
    breaks: "a step is recorded at most once",
    ends: ["a2 acquires", "a1 appends", "a2 appends"],
  },
  {
    name: "fence compared in one transaction, record written in the next",
    rules: { fenceAt: "before" },
    scenario: namesakes,
    breaks: "a record carries the token current at its commit",
    ends: ["a1 compares the fence", "clock expires a late holder", "a2 acquires", "a1 appends"],
  },
  {
    name: "owner name compared instead of the token",
    rules: { fence: "owner name" },
    scenario: namesakes,
    breaks: "a record carries the token current at its commit",
    ends: ["clock expires a late holder", "a2 acquires", "a1 appends"],
  },
  {
    name: "fence on the token alone, in a restored store",
    rules: { fence: "token" },
    scenario: restored,
    breaks: "only the holder writes",
    ends: ["a1 acquires", "store is restored", "a2 acquires", "a1 appends"],
  },
  {
    name: "terms without a nonce, in a restored store",
    rules: { nonce: "none" },
    scenario: restored,
    breaks: "two terms never share token and nonce",
    ends: ["store is backed up", "a1 acquires", "store is restored", "a2 acquires"],
  },
  {
    name: "predecessor not compared, in a restored store",
    rules: { predecessor: "unchecked" },
    scenario: restored,
    breaks: "seq is dense",
    ends: ["store is backed up", "a1 appends", "store is restored", "a1 appends"],
  },
  {
    name: "records numbered by a restored store",
    rules: { predecessor: "numbered by the store" },
    scenario: restored,
    breaks: "no step is skipped",
    ends: ["store is backed up", "a1 appends", "store is restored", "a1 appends"],
  },
  {
    name: "predecessor not compared, after a lost response",
    rules: { predecessor: "numbered by the store" },
    scenario: namesakes,
    breaks: "a step is recorded at most once",
    ends: ["a1 acquires", "a1 appends, the response is lost", "a1 appends"],
  },
  {
    name: "release keeps the token",
    rules: { release: "keeps the token" },
    scenario: handOver,
    breaks: "only the holder writes",
    ends: ["a1 acquires", "a1 releases in mid-body", "a1 appends"],
  },
  {
    name: "release deletes the row, so that tokens restart",
    rules: { release: "deletes the row" },
    scenario: handOver,
    breaks: "tokens never fall along seq",
    ends: ["a2 appends", "a2 releases in mid-body", "b acquires", "b appends"],
  },
  {
    name: "renewal by owner name: a stale heartbeat extends a namesake's lease",
    rules: { renew: "owner name" },
    scenario: namesakes,
    breaks: "only the holder keeps its lease alive",
    ends: ["clock expires a late holder", "a2 acquires", "a1 renews"],
  },
  {
    name: "renewal without any match: an orphaned heartbeat revives a released lease",
    rules: { renew: "unmatched" },
    scenario: handOver,
    breaks: "only the holder keeps its lease alive",
    ends: ["a1 releases in mid-body", "a1 renews"],
  },
  {
    name: "a repeated acquire bumps again",
    rules: { repeat: "bumps again" },
    scenario: restoredWithLostResponses,
    breaks: "no takeover before expiry",
    ends: ["a acquires, the response is lost", "a acquires"],
  },
  {
    name: "a repeated acquire waits for itself",
    rules: { repeat: "waits for itself" },
    scenario: namesakes,
    breaks: "no worker is locked out by its own term",
    ends: ["a1 acquires, the response is lost", "a1 is refused its own lease"],
  },
  {
    name: "a doomed holder still writes",
    rules: { doom: "ignored by the fence" },
    scenario: handOver,
    breaks: "nothing is written under a doomed term",
    ends: ["operator dooms the holder", "a1 appends"],
  },
  {
    name: "a lock instead of a lease: no takeover without a release",
    rules: { takeover: "after release only" },
    scenario: namesakes,
    breaks: "the journal can be finished",
    ends: ["a1 acquires", "a1 crashes and restarts"],
  },
];
