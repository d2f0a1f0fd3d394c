import { encode } from "../base/codec.ts";
import { isUncertainRetry } from "./attempt.ts";
import type { Change } from "./changes.ts";
import { effectMachine, obligationMachine } from "./machines.ts";
import { encodeBody, encodePayload, type RecordContext } from "./record-context.ts";
import type { RecordData } from "./records.ts";

/** How records of effects and obligations change the tables; a part of projection.ts. */

export function intended(data: RecordData<"effect.intended">, place: RecordContext): Change[] {
  const { pos, name, connector, semantics, dispatch, key, businessKey, argsHash } = data;
  const own = place.journal;
  const item = dispatch === "outbox" ? place.allocate() : null;
  const changes: Change[] = [
    {
      do: "effect.create",
      source: own,
      run: own,
      pos,
      sub: 0,
      role: "effect",
      name,
      connector: connector ?? null,
      semantics,
      dispatch,
      status: "PENDING",
      authority: item ?? own,
      item,
      key,
      businessKey: businessKey ?? null,
      argsHash,
      args: encode(data.args),
      policy: encodePayload(data.policy),
      surplus: false,
    },
  ];
  if (businessKey !== undefined) {
    changes.push({ do: "business_key.claim", run: own, pos, scope: connector ?? name, businessKey });
  }
  if (item !== null) changes.push(...openItem(item, own, pos, 0, place, "outbox"));
  return changes;
}

export function dispatched(data: RecordData<"effect.dispatched">, place: RecordContext): Change[] {
  const { journal: own, token, nonce } = place;
  const { run = own, pos, sub = 0, attempt, sendWithinMs } = data;
  const to = sub === 0 ? "DISPATCHED" : "COMMITTED";
  return [{ ...status(run, pos, sub, own, to), attempt, token, nonce, sendWithinMs }];
}

export function settled(data: RecordData<"effect.settled">, place: RecordContext): Change[] {
  const own = place.journal;
  const { run = own, pos, sub = 0, to, reason } = data;
  const inline = place.kind === "run";
  const outcome = outcomeOf(data);
  // An inline effect in doubt leaves the run's authority: from now on the reconciler decides, under the item lease.
  const newAuthority = inline && to === "UNKNOWN" ? place.allocate() : null;
  const uncertain = isUncertainRetry(data);
  const changes: Change[] = [{ ...status(run, pos, sub, own, to), reason, outcome, uncertain, newAuthority }];
  if (newAuthority !== null) changes.push(...openItem(newAuthority, run, pos, sub, place, "reconciler", data.failures));
  if (to === "FAILED") changes.push({ do: "business_key.drop", run, pos });
  // An operator's retry is a decision, too: it resumes a run that is stuck on the effect.
  if (!inline && (to === "CONFIRMED" || to === "FAILED" || to === "STUCK" || reason === "operator")) {
    changes.push(outcomeNote(run, pos, sub, to, data));
  }
  return changes;
}

export function armed(data: RecordData<"obligation.armed">, place: RecordContext): Change[] {
  const { run = place.journal, pos, sub } = data;
  const item = place.allocate();
  return [
    { ...compensationRow(data, run, item, place.journal), pos, sub, status: "ARMED", surplus: false },
    ...openItem(item, run, pos, sub, place, null),
  ];
}

export function surplus(data: RecordData<"obligation.surplus">, place: RecordContext): Change[] {
  const { run = place.journal, pos, sub, name } = data;
  const item = place.allocate();
  const stuck = name === undefined; // the effect has no compensate, so an operator must act
  return [
    {
      ...compensationRow(data, run, item, place.journal),
      pos,
      sub,
      status: stuck ? "STUCK" : "PENDING",
      surplus: true,
    },
    ...openItem(item, run, pos, sub, place, stuck ? null : "compensation"),
  ];
}

export function obligationSettled(data: RecordData<"obligation.settled">, place: RecordContext): Change[] {
  const own = place.journal;
  const { run = own, pos, sub, to, reason } = data;
  const outcome = outcomeOf(data);
  const changes: Change[] = [{ ...status(run, pos, sub, own, to), reason, outcome, uncertain: isUncertainRetry(data) }];
  if (to === "COMPENSATED") {
    if (sub === 1) changes.push({ do: "business_key.drop", run, pos });
    changes.push({ do: "obligations.release_next", run });
  }
  if (to === "COMPENSATED" || to === "STUCK" || reason === "operator")
    changes.push(outcomeNote(run, pos, sub, to, data));
  return changes;
}

function outcomeOf(data: { readonly value?: unknown; readonly error?: unknown }): string | null {
  const { value, error } = data;
  if (error !== undefined) return encode({ error });
  return value === undefined ? null : encode({ value });
}

function outcomeNote(run: number, pos: number, sub: number, to: string, data: object): Change {
  const { reason, value, error } = data as { reason?: string; value?: unknown; error?: unknown };
  const note: RecordData<"effect.outcome"> = { run, pos, sub, status: to, reason, value, error };
  // Ancestors wait for the obligation of a finished child, but not for those of surplus effects (sub 2 and up).
  const orAncestor = sub === 1;
  return {
    do: "note.create",
    journal: run,
    kind: "effect.outcome",
    body: encodeBody(note),
    required: false,
    orAncestor,
  };
}

function openItem(
  item: number,
  run: number,
  pos: number,
  sub: number,
  place: RecordContext,
  nextReactor: string | null,
  failures?: number,
): Change[] {
  const opened: RecordData<"item.opened"> = { run, pos, sub, ...(failures === undefined ? {} : { failures }) };
  const { token } = place; // the run's token: acquiring increments it, so an item's first token is the run's plus one
  const lease = { journal: item, kind: "item", run, tenant: null, source: place.journal, workflow: "" } as const;
  return [
    { do: "lease.create", ...lease, token, nextReactor, maxStallMs: null, queue: null },
    { do: "record.create", journal: item, seq: 1, token, kind: "item.opened", body: encodeBody(opened) },
  ];
}

function compensationRow(
  data: { name?: string | undefined; semantics: "idempotent" | "non_idempotent" | "read"; key: string; args?: unknown },
  run: number,
  item: number,
  source: number,
) {
  return {
    do: "effect.create",
    source,
    run,
    role: "compensation",
    name: data.name ?? null,
    connector: null,
    semantics: data.semantics,
    dispatch: "outbox",
    authority: item,
    item,
    key: data.key,
    businessKey: null,
    argsHash: null,
    args: encode(data.args),
    policy: null,
  } as const;
}

type StatusChange = Extract<Change, { do: "effect.status" }>;

function status(run: number, pos: number, sub: number, by: number, to: StatusChange["to"]): StatusChange {
  const machine = (sub === 0 ? effectMachine : obligationMachine) as { sourcesOf(to: string): readonly string[] };
  // The holder of an item may retry it, but only the run makes an armed obligation due (obligations.make_due).
  const from = machine.sourcesOf(to).filter((state) => state !== "ARMED");
  return {
    do: "effect.status",
    run,
    pos,
    sub,
    by,
    to,
    from: from.join(","),
    attempt: null,
    token: null,
    nonce: null,
    sendWithinMs: null,
    reason: null,
    outcome: null,
    uncertain: false,
    newAuthority: null,
  };
}
