import { type ErrorCode, TapeError } from "./errors.ts";
import type { LeaseTarget } from "./lease.ts";

const kinds = {
  run: { code: "TAPE_RUN_NOT_FOUND", field: "run" },
  lease: { code: "TAPE_LEASE_NOT_FOUND", field: "name" },
  queue: { code: "TAPE_QUEUE_UNKNOWN", field: "queue" },
  sink: { code: "TAPE_SINK_UNKNOWN", field: "sink" },
  schedule: { code: "TAPE_SCHEDULE_NOT_FOUND", field: "id" },
  build: { code: "TAPE_NOT_FOUND", field: "build" },
  token: { code: "TAPE_NOT_FOUND", field: "id" },
} as const satisfies Record<string, { code: ErrorCode; field: string }>;

/** The error for a name that does not exist for this tenant; another tenant's name gives the same error. */
export function notFound(kind: keyof typeof kinds, name: string | number): TapeError {
  const { code, field } = kinds[kind];
  return new TapeError(code, `${kind} ${name} not found`, { [field]: name });
}

export function targetNotFound(target: LeaseTarget): TapeError {
  if ("run" in target) return notFound("run", target.run);
  return notFound("lease", "name" in target ? target.name : target.journal);
}
