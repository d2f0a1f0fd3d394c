import { isSealedStore } from "../../seal/sealed-store.ts";
import type { RunSpec } from "../../store/contract/store.ts";
import type { DriveHandle } from "./handle.ts";

/**
 * The value as the record will hold it: a redaction applies to what the code receives, too, so that a replay receives
 * the same. Without a redaction it is the value itself.
 */
export function asRecorded<T>(drive: DriveHandle, kind: string | (() => string), field: string, value: T): T {
  const { store, tenant, runId: run } = drive.options;
  if (!isSealedStore(store) || store.sealed.redact === undefined) return value;
  const { workflow } = drive.history.created;
  const of = typeof kind === "string" ? kind : kind();
  return store.sealed.redact(value, { tenant, kind: of, field, place: `run:${run}`, run, workflow }) as T;
}

/** The same for the input of a run that this process has just created. */
export function specAsRecorded(store: DriveHandle["options"]["store"], tenant: string, spec: RunSpec): RunSpec {
  if (!isSealedStore(store) || store.sealed.redact === undefined) return spec;
  const { id, workflow, debounce } = spec;
  const place = debounce === undefined ? `run:${id}` : `debounce:${workflow}`;
  const at = { tenant, kind: "run.created", field: "input", place, run: id, workflow };
  return { ...spec, input: store.sealed.redact(spec.input, at) };
}
