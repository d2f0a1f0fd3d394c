import type { FeedRecord } from "../../src/store/contract/store.ts";
import type { Evidence } from "../evidence.ts";
import { recordsOf } from "./journal.ts";
import { each, exempt, type Invariant, settles } from "./judge.ts";

/** Reactors whose terms execute the code of a run. */
const driving = new Set(["agent", "recovery"]);

/** The build that the run is pinned to from this record on. */
function pinAfter(records: readonly FeedRecord[], last: FeedRecord): string | undefined {
  let pin: string | undefined;
  for (const record of records) {
    if (record.in !== "journal") continue;
    if (record.kind === "run.created" || record.kind === "term.started") pin = record.data.build ?? pin;
    if (record.kind === "run.pinned") pin = record.data.build;
    if (record === last) break;
  }
  return pin;
}

/** The record that grants this token: a term, or the creation of the run by a process that drives it at once. */
function grantOf(records: readonly FeedRecord[], token: bigint): { record: FeedRecord; reactor: string } | undefined {
  for (const record of records) {
    if (record.in !== "journal") continue;
    if (record.kind === "term.started" && record.token === token) return { record, reactor: record.data.reactor };
    if (record.kind !== "run.created" || record.data.holder === undefined || token !== 1n) continue;
    return { record, reactor: record.data.holder.reactor };
  }
  return undefined;
}

/** Every term of a pinned run that executes its code is held by a process of its build. */
export const pinnedStays: Invariant = (evidence) =>
  each(evidence.builds?.terms ?? [], ({ journal, token, build }) => {
    const records = recordsOf(evidence, journal);
    const [first] = records;
    if (first?.kind !== "run.created" || first.data.workflow !== "pinned") return exempt;
    const grant = grantOf(records, token);
    if (grant === undefined) return [`journal ${journal}: a process got token ${token}, which no record grants`];
    if (!driving.has(grant.reactor)) return exempt;
    const pin = pinAfter(records, grant.record);
    return pin === build ? [] : [`journal ${journal}: a process of ${build} got token ${token} of a run of ${pin}`];
  });

/**
 * Pinned runs of a build without processes are found when one is back: all of them end. The steps of a run that was
 * never moved were executed by one build.
 */
export const pinnedRunsEnd: Invariant = (evidence) =>
  each(evidence.runs, ({ workflow, journal, id, status, outcome }) => {
    if (workflow !== "pinned" || !settles(evidence)) return exempt;
    if (status !== "COMPLETED") return [`${id} is ${status}: ${JSON.stringify(outcome)}`];
    const records = recordsOf(evidence, journal);
    const isMoved = records.some((record) => record.kind === "run.pinned" && record.data.refused === undefined);
    const pin = pinAfter(records, records.at(-1)!);
    const by = outcome as Evidence["runs"][number]["outcome"] & string[];
    return isMoved || by.every((build) => build === pin) ? [] : [`${id} of ${pin} was executed by ${by.join(", ")}`];
  });
