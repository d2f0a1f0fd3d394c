import { defined } from "../../base/defined.ts";
import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
import type { RecordData } from "../../model/records.ts";
import type { RunSpec, StartSignal } from "../contract/store.ts";
import { checkList, checkName, checkObject, checkRunSpec, encodeRecord } from "./entry.ts";

/** A run to create, and the signals that its start sends. */
export interface StartData {
  readonly data: RecordData<"run.created">;
  readonly signals: readonly RecordData<"signal.sent">[];
}

/** `together`: the number of runs in the same transaction. A run with signals is the only one of its transaction. */
export function checkStart(spec: RunSpec, limits: Limits, together = 1): StartData {
  const data = checkRunSpec(spec, limits);
  const { signals } = spec;
  if (signals === undefined) return { data, signals: none };
  checkList("signals", signals);
  if (signals.length > limits.startSignals) {
    const message = `a start sends at most ${limits.startSignals} signals`;
    throw new TapeError("TAPE_TOO_LARGE", message, { field: "signals", limit: "startSignals" });
  }
  if (together > 1 && signals.length > 0) {
    const message = "with one idempotency key, a run with signals is started alone";
    throw new TapeError("TAPE_BAD_INPUT", message, { field: "signals" });
  }
  return { data, signals: signals.map((signal) => checkStartSignal(signal, limits)) };
}

const none: StartData["signals"] = [];

function checkStartSignal(signal: StartSignal, limits: Limits): RecordData<"signal.sent"> {
  checkObject("signals", signal);
  const { name, value, key, binds, by, via } = signal;
  checkName("signals.key", key, limits);
  const data = { name, value, key, ...defined({ binds, by, via }) };
  encodeRecord({ kind: "signal.sent", data }, limits);
  return data;
}
