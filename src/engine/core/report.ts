import type { Log } from "../../base/log.ts";
import { errorFields } from "../../base/reason.ts";
import type { NewRecord } from "../../model/records.ts";
import type { Match } from "../journal/pending-waits.ts";
import type { DriveHandle, RunResult } from "./handle.ts";

/** What went wrong in a run is logged when it is durable, by whoever wrote it: once, with its cause and the next step. */

export interface EffectName {
  readonly run: string;
  readonly effect: string | null;
}

/** A word of the shell: ids are foreign text, and a command line to copy must not carry more than one. */
export const shellWord = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

/** An effect, or an obligation, was settled as something that people should hear of. */
export function reportSettled(log: Log, about: EffectName, record: NewRecord): void {
  if (record.kind !== "effect.settled" && record.kind !== "obligation.settled") return;
  const what = record.kind === "effect.settled" ? "effect" : "obligation";
  const { pos, to, reason, error } = record.data;
  const event = { FAILED: "failed", UNKNOWN: "unknown", STUCK: "stuck", PENDING: "retried" }[to as string];
  // Put back without an error: a crash cut it short, and nothing has failed.
  if (event === undefined || (to === "PENDING" && error === undefined)) return;
  const resolve = `durable-tape resolve ${what} ${shellWord(about.run)} ${pos} --as confirmed|failed|retry --reason "…"`;
  const next = {
    UNKNOWN: "The reconciler observes it where the effect can; otherwise find out whether it happened and resolve it.",
    STUCK: `Find out whether it happened, then: ${resolve}`,
  }[to as string];
  const code = { FAILED: "TAPE_EFFECT_FAILED", STUCK: "TAPE_RUN_STUCK" }[to as string];
  const why = { ...(code !== undefined && { code }), ...(error !== undefined && errorFields(error)) };
  const fields = { ...about, pos, reason, ...why, ...(next !== undefined && { next }) };
  log("warn", `${what}.${event}`, fields);
}

/** A body of the user's threw. While a run is cancelled that is its way out, and nothing to warn of. */
export function reportThrown(
  drive: DriveHandle,
  operation: { readonly name: string; readonly pos: number },
  error: unknown,
) {
  const { log, runId: run } = drive.options;
  const { name, pos } = operation;
  log(drive.cancelRequested ? "debug" : "warn", "step.failed", { run, step: name, pos, ...errorFields(error) });
}

/** The run has its outcome. */
export function reportEnded(drive: DriveHandle, { status, outcome }: RunResult): void {
  if (status === "COMPLETED") return;
  const { log, runId: run } = drive.options;
  const { workflow } = drive.history.created;
  const next = `durable-tape inspect ${shellWord(run)} shows what happened; fork it to try again from a point.`;
  log(status === "CANCELLED" ? "info" : "warn", `run.${status.toLowerCase()}`, {
    run,
    workflow,
    next,
    ...(status !== "CANCELLED" && { code: "TAPE_RUN_FAILED" }),
    ...(outcome === undefined || outcome === null ? {} : errorFields(outcome)),
  });
}

/** What a note settled is durable: the wait hears of it, or, of a refused signal, people do. */
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
