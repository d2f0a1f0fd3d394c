import type { Log } from "../../base/log.ts";
import { errorFields } from "../../base/reason.ts";
import type { NewRecord } from "../../model/records.ts";
import type { Match } from "../journal/pending-waits.ts";
import type { DriveHandle, RunResult } from "./handle.ts";

/** A failure in a run is logged by its writer once it is durable: once, with its cause and the next step. */

export interface EffectName {
  readonly run: string;
  readonly effect: string | null;
}

/** Quotes text as one word of the shell: ids are foreign text, and a command line to copy must not contain more. */
export const shellWord = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

/** Logs the settlement of an effect or an obligation if operators should know of it. */
export function reportSettled(log: Log, about: EffectName, record: NewRecord): void {
  if (record.kind !== "effect.settled" && record.kind !== "obligation.settled") return;
  const what = record.kind === "effect.settled" ? "effect" : "obligation";
  const { pos, to, reason, error } = record.data;
  const event = { FAILED: "failed", UNKNOWN: "unknown", STUCK: "stuck", PENDING: "retried" }[to as string];
  // PENDING without an error: a crash interrupted the attempt, and nothing has failed.
  if (event === undefined || (to === "PENDING" && error === undefined)) return;
  const resolve = `durable-tape resolve ${what} ${shellWord(about.run)} ${pos} --as confirmed|failed|retry --reason "…"`;
  const next = {
    UNKNOWN:
      "The reconciler observes it if the effect has observe; otherwise find out whether it happened and resolve it.",
    STUCK: `Find out whether it happened, then: ${resolve}`,
  }[to as string];
  const code = { FAILED: "TAPE_EFFECT_FAILED", STUCK: "TAPE_RUN_STUCK" }[to as string];
  const why = { ...(code !== undefined && { code }), ...(error !== undefined && errorFields(error)) };
  const fields = { ...about, pos, reason, ...why, ...(next !== undefined && { next }) };
  log("warn", `${what}.${event}`, fields);
}

/** Logs the error of a body. In a cancelled run that is how a body ends, so it is no warning. */
export function reportThrown(
  drive: DriveHandle,
  operation: { readonly name: string; readonly pos: number },
  error: unknown,
) {
  const { log, runId: run } = drive.options;
  const { name, pos } = operation;
  log(drive.cancelRequested ? "debug" : "warn", "step.failed", { run, step: name, pos, ...errorFields(error) });
}

/** Logs the outcome of a run. */
export function reportEnded(drive: DriveHandle, { status, outcome }: RunResult): void {
  if (status === "COMPLETED") return;
  const { log, runId: run } = drive.options;
  const { workflow } = drive.history.created;
  const next = `durable-tape inspect ${shellWord(run)} shows what happened; fork it to retry from a position.`;
  log(status === "CANCELLED" ? "info" : "warn", `run.${status.toLowerCase()}`, {
    run,
    workflow,
    next,
    ...(status !== "CANCELLED" && { code: "TAPE_RUN_FAILED" }),
    ...(outcome === undefined || outcome === null ? {} : errorFields(outcome)),
  });
}

/** The record of a note is durable: completes the wait, or logs a refused signal. */
export function settleMatch(drive: DriveHandle, { record, wait }: Match): void {
  if (record.kind !== "signal.refused") {
    wait.written();
    return;
  }
  const { log, runId: run } = drive.options;
  const { name: gate, reason } = record.data;
  const next = "Send another signal whose value fits; the gate still waits.";
  log("warn", "signal.refused", { run, gate, code: "TAPE_BAD_GATE_VALUE", error: reason, next });
}
