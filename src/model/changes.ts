import type { ErrorCode } from "./errors.ts";
import type { EffectStatus, GateStatus, ObligationStatus, RunPhase, TimerStatus } from "./machines.ts";
import type { RecordKind } from "./records.ts";
import type { EffectRow, JournalKind } from "./rows.ts";
import type { SlotEvent } from "./slot.ts";

/**
 * What a record does to the tables, as data. A store executes each kind with the statement of the same name in its
 * `sql/` folder; the fields below are that statement's parameters. A change is conditional: if its condition does not
 * hold, the whole append is refused with the code in {@link refusals} and writes nothing.
 */
export type Change =
  | {
      readonly do: "run.create";
      readonly journal: number;
      /** null for a child: it gets that of the run that starts it. */
      readonly tenant: string | null;
      readonly id: string;
      readonly workflow: string;
      readonly version: string | null;
      readonly inputHash: string;
      readonly labels: string | null;
      readonly parent: number | null;
      readonly parentPos: number | null;
      /** The run that starts it; null: a client does. Without a parent it counts as a start of its tenant. */
      readonly source: number | null;
    }
  | {
      readonly do: "lease.create";
      readonly journal: number;
      readonly kind: JournalKind;
      readonly run: number;
      /** null: copied from the lease of `source`. */
      readonly tenant: string | null;
      readonly source: number | null;
      /** The backlog in which a run waits. Leases of items and names use the backlog with the empty name. */
      readonly workflow: string;
      readonly token: bigint;
      readonly nextReactor: string | null;
      /** Renewals of a run without progress for longer than this are refused. */
      readonly maxStallMs: number | null;
      /** The queue of a run, see `leaseQueue`. */
      readonly queue: string | null;
    }
  /** Lists the labels of a new run. */
  | { readonly do: "labels.create"; readonly journal: number }
  /** `set`: an object, `unset`: an array of keys, both in JSON. The run has at most `max` labels then. */
  | {
      readonly do: "labels.set";
      readonly run: number;
      readonly set: string;
      readonly unset: string;
      readonly max: number;
    }
  /** A new generation of the run, from record `seq`, position `pos` and the note after `notesTaken` on. */
  | {
      readonly do: "lease.begin";
      readonly journal: number;
      readonly seq: number;
      readonly pos: number;
      readonly notesTaken: number;
    }
  | { readonly do: "lease.limit"; readonly journal: number; readonly maxStallMs: number }
  | { readonly do: "lease.pin"; readonly journal: number; readonly build: string }
  /** The place of a new run in its queue; with the empty name it only starts later. */
  | {
      readonly do: "slot.create";
      readonly journal: number;
      readonly queue: string;
      readonly key: string;
      readonly class: number;
      readonly state: "QUEUED" | "DELAYED";
      readonly expires: boolean;
      readonly weight: number | null;
    }
  /** A run that keeps its slot must not wait for a child that waits for that slot. */
  | { readonly do: "slot.assert_unnested"; readonly journal: number; readonly queue: string; readonly key: string }
  /** Moves the run in its queue, as `slotAfter` says. Without a place there it changes nothing. */
  | { readonly do: "slot.set"; readonly journal: number; readonly event: SlotEvent }
  | {
      readonly do: "record.create";
      readonly journal: number;
      readonly seq: number;
      readonly token: bigint;
      readonly kind: RecordKind;
      readonly body: string;
    }
  | {
      readonly do: "run.phase";
      readonly journal: number;
      readonly to: RunPhase;
      readonly from: string;
      /** From ENDING only if the decided cause is one of these (comma-separated); null: any cause. */
      readonly decided: string | null;
      /** Cause and outcome belong to the decision: the transition out of LIVE writes them, and they never change. */
      readonly cause: string | null;
      readonly outcome: string | null;
      readonly parent: number | null;
    }
  | { readonly do: "run.assert_continues"; readonly journal: number }
  | { readonly do: "run.assert_settled"; readonly journal: number; readonly armed: boolean }
  | {
      readonly do: "note.create";
      readonly journal: number;
      readonly kind: RecordKind;
      readonly body: string;
      /** false: a closed inbox does not refuse the append (a late settlement of a finished run). */
      readonly required: boolean;
      /** For the inbox of a finished child: notify its nearest live ancestor, which waits for its obligations. */
      readonly orAncestor: boolean;
    }
  | { readonly do: "lease.wake"; readonly journal: number; readonly nextReactor: string; readonly delayMs: number }
  | ({ readonly do: "effect.create"; readonly source: number } & Pick<
      EffectRow,
      | "run"
      | "pos"
      | "sub"
      | "role"
      | "name"
      | "connector"
      | "semantics"
      | "dispatch"
      | "status"
      | "authority"
      | "item"
      | "key"
      | "businessKey"
      | "argsHash"
      | "args"
      | "policy"
      | "surplus"
    >)
  | {
      readonly do: "effect.status";
      readonly run: number;
      readonly pos: number;
      readonly sub: number;
      /** The journal whose fence covers this write; it must be the effect's authority. */
      readonly by: number;
      readonly to: EffectStatus | ObligationStatus;
      readonly from: string;
      readonly attempt: number | null;
      readonly token: bigint | null;
      readonly nonce: bigint | null;
      readonly sendWithinMs: number | null;
      readonly reason: string | null;
      readonly outcome: string | null;
      /** An attempt may have happened, so the effect can no longer be withdrawn. */
      readonly uncertain: boolean;
      /** The item journal that becomes the authority; null: the authority stays. */
      readonly newAuthority: number | null;
    }
  | { readonly do: "effects.withdraw"; readonly run: number }
  /** One effect that was certainly never sent. */
  | { readonly do: "effect.withdraw"; readonly run: number; readonly pos: number }
  | { readonly do: "business_keys.sweep"; readonly run: number }
  | { readonly do: "items.sweep"; readonly run: number }
  /** The item of a withdrawn effect needs no reactor. */
  | { readonly do: "item.sweep"; readonly run: number; readonly pos: number }
  | {
      readonly do: "business_key.claim";
      readonly run: number;
      readonly pos: number;
      readonly scope: string;
      readonly businessKey: string;
    }
  /** As a claim, also if another run has the key: that run has been asked to stop. */
  | {
      readonly do: "business_key.replace";
      readonly run: number;
      readonly pos: number;
      readonly scope: string;
      readonly businessKey: string;
    }
  | { readonly do: "business_key.drop"; readonly run: number; readonly pos: number }
  /** All armed obligations of the run and its descendants, or the one at `pos`. */
  | {
      readonly do: "obligations.make_due";
      readonly run: number;
      readonly pos: number | null;
      readonly sub: number | null;
    }
  /** The armed obligations of the child that the run started at `pos`, and of its descendants. */
  | { readonly do: "obligations.make_due_below"; readonly run: number; readonly pos: number }
  | { readonly do: "obligations.release_next"; readonly run: number }
  | { readonly do: "obligations.discharge"; readonly run: number }
  | {
      readonly do: "gate.create";
      readonly run: number;
      readonly pos: number;
      readonly name: string;
      readonly binds: string | null;
      readonly payload: string | null;
      readonly approvers: string | null;
      readonly callback: "json" | "raw" | null;
    }
  | {
      readonly do: "gate.status";
      readonly run: number;
      readonly pos: number;
      readonly to: GateStatus;
      /** The number in the inbox of the signal that the gate takes, as text. */
      readonly note: string | null;
      readonly value: string | null;
    }
  /** The answer in this note was refused: the gate takes another. */
  | { readonly do: "gate.wait_again"; readonly run: number; readonly note: number }
  | { readonly do: "gates.withdraw"; readonly run: number }
  | {
      readonly do: "published.put";
      readonly run: number;
      readonly name: string;
      readonly value: string;
      /** The record that writes the value. */
      readonly seq: number;
      /** How many names the run may publish. */
      readonly max: number;
    }
  | { readonly do: "reply.create"; readonly run: number; readonly note: number; readonly body: string }
  | {
      readonly do: "timer.create";
      readonly run: number;
      readonly pos: number;
      readonly purpose: string;
      readonly delayMs: number;
      readonly until: number | null;
    }
  | {
      readonly do: "timer.status";
      readonly run: number;
      readonly pos: number;
      readonly purpose: string;
      readonly to: TimerStatus;
      readonly required: boolean;
    }
  | { readonly do: "timer.fire"; readonly run: number; readonly pos: number; readonly purpose: string }
  | { readonly do: "timers.cancel"; readonly run: number }
  /** The timers of the current generation that its code has set. */
  | { readonly do: "timers.withdraw"; readonly run: number }
  | { readonly do: "budget.create"; readonly run: number; readonly unit: string; readonly cap: number }
  | {
      readonly do: "budget.reserve";
      readonly by: number;
      readonly run: number;
      readonly unit: string;
      readonly amount: number;
      /** How many units the tree may spend. */
      readonly max: number;
    }
  | {
      readonly do: "budget.charge";
      readonly by: number;
      readonly run: number;
      readonly unit: string;
      readonly spent: number;
      readonly reserved: number;
      readonly max: number;
    }
  | {
      readonly do: "value.put";
      readonly tenant: string | null;
      readonly source: number | null;
      readonly key: string;
      readonly version: number;
      readonly value: string | null;
    }
  | {
      readonly do: "value.log";
      readonly tenant: string | null;
      readonly source: number | null;
      readonly key: string;
      readonly version: number;
      readonly value: string | null;
      /** Versions up to this one are deleted. */
      readonly through: number;
    }
  | {
      readonly do: "lease.release";
      readonly journal: number;
      readonly notesTaken: number;
      readonly nextReactor: string | null;
      readonly delayMs: number;
      readonly endReason: string;
      /** false once the journal's run has its outcome; its inbox then refuses notes. */
      readonly open: boolean;
    };

export type ChangeKind = Change["do"];

/** The code that refuses an append whose change does not meet its condition; null: the change has no condition. */
export const refusals: Readonly<Record<ChangeKind, ErrorCode | null>> = {
  "run.create": "TAPE_RUN_CONFLICT",
  "lease.create": "TAPE_INVARIANT",
  "labels.create": null,
  "labels.set": "TAPE_TOO_LARGE",
  "lease.begin": "TAPE_ILLEGAL_TRANSITION",
  "lease.limit": null,
  "lease.pin": null,
  "slot.create": "TAPE_QUEUE_UNKNOWN",
  "slot.assert_unnested": "TAPE_QUEUE_NESTED",
  "slot.set": null,
  "record.create": "TAPE_INVARIANT",
  "run.phase": "TAPE_ILLEGAL_TRANSITION",
  "run.assert_continues": "TAPE_RUN_UNSETTLED",
  "run.assert_settled": "TAPE_RUN_UNSETTLED",
  "note.create": "TAPE_RUN_ENDED",
  "lease.wake": null,
  "effect.create": "TAPE_ILLEGAL_TRANSITION",
  "effect.status": "TAPE_ILLEGAL_TRANSITION",
  "effects.withdraw": null,
  "effect.withdraw": "TAPE_ILLEGAL_TRANSITION",
  "business_keys.sweep": null,
  "items.sweep": null,
  "item.sweep": null,
  "business_key.claim": "TAPE_BUSINESS_KEY_TAKEN",
  "business_key.replace": null,
  "business_key.drop": null,
  "obligations.make_due": "TAPE_ILLEGAL_TRANSITION",
  "obligations.make_due_below": null,
  "obligations.release_next": null,
  "obligations.discharge": null,
  "gate.create": "TAPE_ILLEGAL_TRANSITION",
  "gate.status": "TAPE_ILLEGAL_TRANSITION",
  "gate.wait_again": null,
  "gates.withdraw": null,
  "published.put": "TAPE_TOO_LARGE",
  "reply.create": "TAPE_ILLEGAL_TRANSITION",
  "timer.create": "TAPE_ILLEGAL_TRANSITION",
  "timer.status": "TAPE_ILLEGAL_TRANSITION",
  "timer.fire": "TAPE_ILLEGAL_TRANSITION",
  "timers.cancel": null,
  "timers.withdraw": null,
  "budget.create": "TAPE_INVARIANT",
  "budget.reserve": "TAPE_BUDGET_EXCEEDED",
  "budget.charge": "TAPE_BUDGET_EXCEEDED",
  "value.put": "TAPE_VERSION_CONFLICT",
  "value.log": null,
  "lease.release": "TAPE_NOTES_PENDING",
};

/** Whether a change that matches no row refuses the append. */
export function isRequired(change: Change): boolean {
  if ("required" in change) return change.required;
  if (change.do === "obligations.make_due") return change.pos !== null;
  return refusals[change.do] !== null;
}

/**
 * The row outside its own journal that a change contends for, or undefined. Two writes that contend for the same row go
 * into different batches, because a set-based statement can change a row only once.
 */
export function contended(change: Change): string | undefined {
  switch (change.do) {
    case "note.create":
    case "lease.wake":
      return `j${change.journal}`;
    case "run.create":
      return `r${change.tenant ?? ""}/${change.id}`;
    case "business_key.claim":
      return `c${change.scope}/${change.businessKey}`;
    case "budget.reserve":
    case "budget.charge":
      return `b${change.run}`;
    case "value.put":
      return `v${change.tenant ?? ""}/${change.key}`;
    case "effect.status":
    case "effect.create":
    case "effect.withdraw":
    case "obligations.make_due":
    case "obligations.make_due_below":
    case "obligations.release_next":
    case "obligations.discharge":
      return `e${change.run}`;
    default:
      return undefined;
  }
}
