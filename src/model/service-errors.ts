import type { ErrorEntry } from "./error-entry.ts";

/** Rows of the error table about the store and the server, as opposed to runs and leases. */
export const serviceErrors = {
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
  TAPE_TENANT_MOVING: {
    fault: "store",
    retry: "later",
    next: "The tenant is moving to another shard: retry in a moment. Nothing was written.",
  },
  TAPE_SHARD_MISMATCH: {
    fault: "operator",
    retry: "no",
    next: "Give every process the same list of shards, each name with the URL of its own database. Nothing was written.",
  },
  TAPE_SHARD_REFUSED: {
    fault: "operator",
    retry: "no",
    next: "Do what the message says, then repeat the command: it continues where it stopped.",
  },
  TAPE_CURSOR_MOVED: {
    fault: "caller",
    retry: "no",
    next: "Read the feed of all tenants from its start, or follow the feed of each tenant: its cursors stay valid.",
  },
  TAPE_OUTCOME_UNKNOWN: {
    fault: "store",
    retry: "reread",
    next: "The commit's outcome is unknown. Acquire a new term and read before writing again.",
  },
  TAPE_UNARMED: {
    fault: "operator",
    retry: "later",
    next: "Check that the alarm service is reachable and accepts this deployment's credentials. Nothing was written.",
  },
  TAPE_NO_CODEC: {
    fault: "operator",
    retry: "later",
    next: "Open this process with the payload codec that encoded the payload, or leave the work to one that has it.",
  },
  TAPE_KEY_UNKNOWN: {
    fault: "operator",
    retry: "later",
    next: "Give the codec the named key, then redrive the run. Without the key its payloads stay unreadable.",
  },
  TAPE_PAYLOAD_REFUSED: {
    fault: "operator",
    retry: "no",
    next: "The payload was changed, moved, or encrypted under another key of this id: restore it, then redrive the run.",
  },
  TAPE_CODEC_FAILED: {
    fault: "operator",
    retry: "later",
    next: "The payload codec failed: check what it depends on, such as a key service. Nothing was written.",
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
  TAPE_STORE_UNSUPPORTED: {
    fault: "operator",
    retry: "no",
    next: "Use PostgreSQL 14 or newer, or a service that runs it. Nothing was written to this server.",
  },
  TAPE_NODE_OUTDATED: {
    fault: "operator",
    retry: "no",
    next: "Run on Node 24.14.1 or newer (22.22.2 and 25.8.2 of those lines): in older versions a small request can block a process for minutes.",
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
  TAPE_GATE_STALE: {
    fault: "caller",
    retry: "no",
    next: "List the open gates of the run, decide again, and answer with the binds that they show.",
  },
  TAPE_NOT_APPROVER: {
    fault: "caller",
    retry: "no",
    next: "Have one of the gate's approvers send it; gates.list shows them.",
  },
  TAPE_SELF_APPROVAL: {
    fault: "caller",
    retry: "no",
    next: "Have another token answer the gate, or let the gate allow it with approvers: { self: true }.",
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
  TAPE_PEER_MISSING: {
    fault: "operator",
    retry: "no",
    next: "Run the npm command that the message names, then start again.",
  },
  TAPE_DEPLOY_EDITED: {
    fault: "operator",
    retry: "no",
    next: "Move the changes into tape.yaml, or keep the files elsewhere; durable-tape deploy --force overwrites them.",
  },
  TAPE_DEPLOY_SECRET: {
    fault: "operator",
    retry: "no",
    next: "Replace the value by a variable, and name its secret in tape.deploy.secrets. Change a secret that was published.",
  },
  TAPE_ARCHIVE: {
    fault: "operator",
    retry: "later",
    next: "Check the archive that tape.retention.archive names; nothing was deleted, and the next pass tries again.",
  },
  TAPE_UNVERIFIED: {
    fault: "caller",
    retry: "no",
    next: "Pass verify: googleOidc, webhookSignature or sharedSecret; or unverified with the reason why every request may pass.",
  },
} as const satisfies Record<string, ErrorEntry>;
