import type { ErrorEntry } from "./error-entry.ts";

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
    next: "Use memory:, sqlite:./file.db, postgres://…, alloydb://… or a server at https://…",
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
    next: "A live run has this unique key: join it, wait for its end, or use another key.",
  },
  TAPE_QUEUE_UNKNOWN: {
    fault: "caller",
    retry: "no",
    next: "Check the name, or list the queue in createRunner({ queues }) of a process that runs.",
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
  TAPE_RUN_GONE: {
    fault: "caller",
    retry: "no",
    next: "A run with this id existed and was deleted; an id is never started twice. Choose another id.",
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
  TAPE_OVERLOADED: {
    fault: "store",
    retry: "later",
    next: "The write queue is full: slow down, then retry.",
  },
  TAPE_STORE_BUSY: {
    fault: "store",
    retry: "later",
    next: "Retry; if it persists, look for a long-running transaction.",
  },
  TAPE_STORE_UNREACHABLE: {
    fault: "store",
    retry: "later",
    next: "Check that the database runs and is reachable. Nothing was written.",
  },
  TAPE_OUTCOME_UNKNOWN: {
    fault: "store",
    retry: "reread",
    next: "The commit's outcome is unknown. Acquire a new term and read before writing again.",
  },
  TAPE_STORE_CLOSED: {
    fault: "caller",
    retry: "no",
    next: "The store was closed: open a new one.",
  },
  TAPE_STORE_NOT_DURABLE: {
    fault: "operator",
    retry: "no",
    next: "Make the named setting durable, or accept the loss explicitly in the store's URL.",
  },
  TAPE_NODE_OUTDATED: {
    fault: "operator",
    retry: "no",
    next: "Run on Node 24.14.1 or newer (25.8.2 of that line): in older versions a small request can block a process for minutes.",
  },
  TAPE_STORE_PLAIN: {
    fault: "operator",
    retry: "no",
    next: "Add sslmode=verify-full to the store's URL, and sslrootcert=FILE for your own authority; sslmode=disable accepts an unencrypted connection.",
  },
  TAPE_STORE_UNPROTECTED: {
    fault: "operator",
    retry: "no",
    next: "Stop every process and recreate the index or table as in schema.sql: without it a stale write would succeed.",
  },
  TAPE_STORE_COPIED: {
    fault: "operator",
    retry: "no",
    next: "Open the original, or remove it; to use the copy on its own: durable-tape store restored --reason TEXT.",
  },
  TAPE_STORE_FORBIDDEN: {
    fault: "operator",
    retry: "no",
    next: "Run durable-tape migrate as the schema's owner, and grant this role what durable-tape migrate --grants ROLE prints.",
  },
  TAPE_SCHEMA_NEWER: {
    fault: "operator",
    retry: "no",
    next: "The store was migrated by a newer Tape: upgrade this process.",
  },
  TAPE_SCHEMA_CHANGED: {
    fault: "operator",
    retry: "no",
    next: "An applied migration differs from the one shipped: restore the shipped file or the database.",
  },
  TAPE_UNAUTHENTICATED: {
    fault: "caller",
    retry: "no",
    next: "Send `Authorization: Bearer <token>` with a token that has not expired and was not revoked.",
  },
  TAPE_FORBIDDEN: {
    fault: "caller",
    retry: "no",
    next: "Use a token with the role that the message names.",
  },
  TAPE_NOT_APPROVER: {
    fault: "caller",
    retry: "no",
    next: "Have one of the gate's approvers send it; gates.list shows them.",
  },
  TAPE_NO_ROUTE: {
    fault: "caller",
    retry: "no",
    next: "See /openapi.json for the available calls.",
  },
  TAPE_NOT_FOUND: {
    fault: "caller",
    retry: "no",
    next: "Check the name and the tenant of the token; list what exists.",
  },
  TAPE_KEY_REUSED: {
    fault: "caller",
    retry: "no",
    next: "Use a new Idempotency-Key for a different request.",
  },
  TAPE_RATE_LIMITED: {
    fault: "caller",
    retry: "later",
    next: "Wait as long as Retry-After says, and send fewer calls.",
  },
  TAPE_DRAINING: {
    fault: "store",
    retry: "later",
    next: "Retry: another replica takes the call. Nothing was done.",
  },
  TAPE_BAD_RESPONSE: {
    fault: "tape",
    retry: "no",
    next: "Check that the address is a Tape server's and that both sides run compatible versions.",
  },
  TAPE_SERVER_EXPOSED: {
    fault: "operator",
    retry: "no",
    next: "Bind 127.0.0.1, or require credentials and TLS before exposing the server; plain: accepted declares that a proxy terminates TLS.",
  },
  TAPE_INVARIANT: {
    fault: "tape",
    retry: "no",
    next: "An internal invariant was violated. Nothing more was written; report it with the details.",
  },
} as const satisfies Record<string, ErrorEntry>;

/** The code of every error that Tape throws. */
export type ErrorCode = keyof typeof table;
/** Every error code: whose fault it is, whether a retry can help, and what to do next. */
export const errorTable: Readonly<Record<ErrorCode, ErrorEntry>> = table;
