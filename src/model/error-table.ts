import type { ErrorEntry } from "./error-entry.ts";
import { serviceErrors } from "./service-errors.ts";

/**
 * The closed error table. Every error that users can see has a row here and a section in docs/errors.md; a test
 * compares the two. `fault` names the party that has to act, `retry` whether the same call can succeed later, `next`
 * the action to take.
 */
const table = {
  TAPE_BAD_INPUT: {
    fault: "caller",
    retry: "no",
    next: "Correct the named field; nothing was written.",
  },
  TAPE_TOO_LARGE: {
    fault: "caller",
    retry: "no",
    next: "Send less: keep large data elsewhere and record a reference, or raise the named limit.",
  },
  TAPE_NOT_ENCODABLE: {
    fault: "caller",
    retry: "no",
    next: "Convert the named value to plain data (JSON types, Date, BigInt, bytes, Map, Set, Error) before recording it.",
  },
  TAPE_BAD_TIMING: {
    fault: "caller",
    retry: "no",
    next: "Choose timings with heartbeat < trust deadline < TTL, and a TTL above the store's transaction bound.",
  },
  TAPE_BAD_STORE_URL: {
    fault: "caller",
    retry: "no",
    next: "Use memory:, sqlite:./file.db, postgres://…, alloydb://…, spanner://… or a server at https://…",
  },
  TAPE_STORE_PLANNED: {
    fault: "caller",
    retry: "no",
    next: "Use postgres://…, alloydb://… or spanner://… today: this store is planned, and this version does not have it.",
  },
  TAPE_NO_TRANSACTION: {
    fault: "caller",
    retry: "no",
    next: "Pass the connection (not a pool) on which you ran BEGIN, before COMMIT and before any statement of it failed.",
  },
  TAPE_OTHER_DATABASE: {
    fault: "caller",
    retry: "no",
    next: "Use a connection to the database and schema of this app's store; leave the transaction out where there is none.",
  },
  TAPE_RUN_NOT_FOUND: {
    fault: "caller",
    retry: "no",
    next: "Check the run id and the tenant; list runs to see what exists.",
  },
  TAPE_RUN_CONFLICT: {
    fault: "caller",
    retry: "no",
    next: "The id is taken by a run with another workflow or input: choose another id.",
  },
  TAPE_RUN_LIVE: {
    fault: "caller",
    retry: "later",
    next: "Wait until the named run has ended, or cancel it; for a unique key, join it or use another key.",
  },
  TAPE_RUN_PINNED: {
    fault: "operator",
    retry: "later",
    next: "Run a process of the named build until it is drained, or move the run: durable-tape builds move.",
  },
  TAPE_QUEUE_UNKNOWN: {
    fault: "caller",
    retry: "no",
    next: "Check the name, or list the queue in createRunner({ queues }) of a process that runs.",
  },
  TAPE_SINK_UNKNOWN: {
    fault: "caller",
    retry: "no",
    next: "Check the name with `durable-tape sinks`: a sink is known from its first start on.",
  },
  TAPE_QUEUE_CHANGED: {
    fault: "caller",
    retry: "later",
    next: "Let the queue become empty before you change what it counts, or define a queue with another name.",
  },
  TAPE_QUEUE_NESTED: {
    fault: "caller",
    retry: "no",
    next: 'The child would wait for a slot that a run above it holds: use another queue or key, or counts: "running".',
  },
  TAPE_OPEN_CHILDREN: {
    fault: "caller",
    retry: "later",
    next: "Wait for the children before the run continues as new: await child.result(), or signal them to end.",
  },
  TAPE_RUN_GONE: {
    fault: "caller",
    retry: "no",
    next: "A run with this id existed and was deleted; an id is never started twice. Choose another id.",
  },
  TAPE_ERASED: {
    fault: "caller",
    retry: "no",
    next: "The payloads of this run were erased and cannot be read any more. Start a new run if the work is still needed.",
  },
  TAPE_RUN_ENDED: {
    fault: "caller",
    retry: "no",
    next: "The run has its final outcome. Read it, or fork the run under a new id; fork before a compensated effect to execute it again.",
  },
  TAPE_RUN_UNSETTLED: {
    fault: "owner",
    retry: "later",
    next: "Settle or withdraw the open effect, gate, timer, child or obligation first.",
  },
  TAPE_NO_OBSERVER: {
    fault: "caller",
    retry: "no",
    next: "Check the upstream yourself, then resolve as confirmed, failed or retry; or add `observe` to the effect.",
  },
  TAPE_NO_COMPENSATE: {
    fault: "caller",
    retry: "no",
    next: "Compensate it manually, or start a run that does; add `compensate` to the effect for later runs.",
  },
  TAPE_RECORD_MISPLACED: {
    fault: "tape",
    retry: "no",
    next: "This kind of record does not belong in this kind of journal; report it.",
  },
  TAPE_RECORD_NEWER: {
    fault: "operator",
    retry: "no",
    next: "The journal was written by a newer Tape: upgrade this process.",
  },
  TAPE_ILLEGAL_TRANSITION: {
    fault: "owner",
    retry: "reread",
    next: "Re-read the state: it was already settled, or this transition does not exist.",
  },
  TAPE_BUSINESS_KEY_TAKEN: {
    fault: "caller",
    retry: "no",
    next: "Another effect already owns this business key; inspect the run named in the error.",
  },
  TAPE_BUDGET_EXCEEDED: {
    fault: "caller",
    retry: "no",
    next: "Catch it and spend less, or start the run with a larger budget.",
  },
  TAPE_SHARDS_CHANGED: {
    fault: "operator",
    retry: "later",
    next: "Stop the processes with the other number of shards, or run `durable-tape singleton reshard`.",
  },
  TAPE_VERSION_CONFLICT: {
    fault: "caller",
    retry: "reread",
    next: "The value has changed: read it again, then retry.",
  },
  TAPE_VALUE_COMPACTED: {
    fault: "caller",
    retry: "reread",
    next: "That version is older than the kept history: read the value and watch from its version.",
  },
  TAPE_QUOTA: {
    fault: "caller",
    retry: "later",
    next: "Wait until some runs end, delete what is not needed, or ask the store's operator to raise it: `durable-tape quota`.",
  },
  TAPE_BAD_SCHEDULE: {
    fault: "caller",
    retry: "no",
    next: "Correct what the message names: expression, time zone, catch-up window; nothing was written.",
  },
  TAPE_SCHEDULE_NOT_FOUND: {
    fault: "caller",
    retry: "no",
    next: "Check the schedule's id and the tenant; list the schedules to see what exists.",
  },
  TAPE_SCHEDULE_EXISTS: {
    fault: "caller",
    retry: "no",
    next: "A schedule with this id has another definition: update it, or choose another id.",
  },
  TAPE_BAD_CONFIG: {
    fault: "operator",
    retry: "no",
    next: "Correct the setting at the place that the message names; nothing was started.",
  },
  TAPE_BAD_MODULE: {
    fault: "operator",
    retry: "no",
    next: "Name a file and its export, as in ./app/agent.ts#buildRunner.",
  },
  TAPE_NO_RUN: {
    fault: "caller",
    retry: "no",
    next: "Call effects inside a workflow; outside of one they are not recorded.",
  },
  TAPE_NESTED: {
    fault: "caller",
    retry: "no",
    next: "Call it in the workflow itself, next to the operation that the message names, not inside its body.",
  },
  TAPE_HUNG: {
    fault: "caller",
    retry: "no",
    next: "Cancel the run if the awaited call never ends, and add a timeout to that call.",
  },
  TAPE_TIMEOUT: {
    fault: "caller",
    retry: "later",
    next: "Find out why the step or scope takes so long; raise its timeout, or add a retry.",
  },
  TAPE_STREAM_CLOSED: {
    fault: "caller",
    retry: "no",
    next: "Write to a stream only inside the body that opened it, and await every write.",
  },
  TAPE_STALLED: {
    fault: "caller",
    retry: "no",
    next: "Give the step that the message names a timeout, or let it call tape.progress; then redrive the run.",
  },
  TAPE_UNREACHABLE: {
    fault: "operator",
    retry: "later",
    next: "Check that the upstream answers and that its credentials are valid; then redrive the run.",
  },
  TAPE_EFFECT_UNREGISTERED: {
    fault: "caller",
    retry: "no",
    next: "Add the effect to createRunner({ effects: [...] }) of every process that drives its runs.",
  },
  TAPE_NO_WORKER: {
    fault: "operator",
    retry: "later",
    next: "Start a process whose runner has this workflow.",
  },
  TAPE_UNSAFE_EFFECT: {
    fault: "caller",
    retry: "no",
    next: "Declare businessKey with observe, or compensate, or another semantics; or allowUnsafe with a reason.",
  },
  TAPE_EFFECT_FAILED: {
    fault: "caller",
    retry: "no",
    next: "The effect did not happen. Catch it, or let the run fail and compensate.",
  },
  TAPE_CANCELLED: {
    fault: "operator",
    retry: "no",
    next: "Clean up and let the error propagate.",
  },
  TAPE_DIVERGED: {
    fault: "caller",
    retry: "no",
    next: "The code does not match the journal: guard the change with tape.patched, then redrive.",
  },
  TAPE_JOURNAL_DAMAGED: {
    fault: "store",
    retry: "no",
    next: "A record is missing: the tables were changed from outside. Restore it from a backup, or fork the run.",
  },
  TAPE_RUN_STUCK: {
    fault: "operator",
    retry: "later",
    next: "Operator action needed: `durable-tape inspect` shows why; then resolve or redrive.",
  },
  TAPE_RUN_FAILED: {
    fault: "caller",
    retry: "no",
    next: "The workflow threw; the cause is attached.",
  },
  TAPE_BAD_GATE_VALUE: {
    fault: "caller",
    retry: "no",
    next: "Send a signal whose value matches the gate's schema.",
  },
  TAPE_ASK_REJECTED: {
    fault: "caller",
    retry: "no",
    next: "The run has rejected the request; the cause is attached. Another request needs another key.",
  },
  TAPE_NO_REPLY: {
    fault: "caller",
    retry: "later",
    next: "The run still has the request: ask again with the same key to wait for its reply.",
  },
  TAPE_NO_PUBLIC_URL: {
    fault: "operator",
    retry: "no",
    next: "Set tape.server.public_url, or publicUrl of Tape.open, to the address that reaches the server; or use the token.",
  },
  TAPE_BAD_FORK_POINT: {
    fault: "caller",
    retry: "no",
    next: "Fork at the position that the message names, settle what is open before it, or name compensated effects to keep in keepCompensated.",
  },
  TAPE_FORK_REPEATS: {
    fault: "caller",
    retry: "no",
    next: "Name each effect that may happen a second time in `repeat`, or fork at a later position.",
  },
  TAPE_FENCED: {
    fault: "owner",
    retry: "no",
    next: "Another owner has a newer token. Stop, write nothing more; acquire again if the work is still needed.",
  },
  TAPE_NOT_HEAD: {
    fault: "owner",
    retry: "reread",
    next: "The journal's head has moved: read it again before writing.",
  },
  TAPE_NOTES_PENDING: {
    fault: "owner",
    retry: "reread",
    next: "Take the pending notes from the inbox first, then park or end.",
  },
  TAPE_LEASE_HELD: {
    fault: "caller",
    retry: "later",
    next: "Wait for the remaining time in the error, or take over with a reason.",
  },
  TAPE_LEASE_LOST: {
    fault: "owner",
    retry: "no",
    next: "Stop: the term has ended or its deadline has passed. Acquire again if the work is still needed.",
  },
  TAPE_LEASE_PAUSED: {
    fault: "operator",
    retry: "later",
    next: "Paused by an operator; resume it first.",
  },
  TAPE_LEASE_STALLED: {
    fault: "owner",
    retry: "no",
    next: "The holder renewed without progress for longer than maxStall; find out what it is blocked on.",
  },
  TAPE_LEASE_NOT_FOUND: {
    fault: "caller",
    retry: "no",
    next: "No lease has this name; list the leases to see what exists.",
  },
  ...serviceErrors,
  TAPE_INVARIANT: {
    fault: "tape",
    retry: "no",
    next: "An internal invariant was violated. Nothing more was written; report it with the details.",
  },
} as const satisfies Record<string, ErrorEntry>;

/** The code of every error that Tape throws. */
export type ErrorCode = keyof typeof table;
/**
 * Every error code: whose fault it is, whether a retry can help, and what to do next.
 *
 * @example
 * const { retry, next } = errorTable.TAPE_FENCED;
 */
export const errorTable: Readonly<Record<ErrorCode, ErrorEntry>> = table;
