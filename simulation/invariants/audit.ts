import { checkAudit } from "../../src/store/audit.ts";
import { combine, each, exempt, type Invariant, mayBeForgotten } from "./judge.ts";

/**
 * Every acknowledged operator action has exactly one audit entry, with operator and reason. There are no other entries.
 */
export const actionsAreAudited: Invariant = ({ actions, audit, lost }) => {
  const acknowledged = each(actions, ({ who, what, at, requestedAt, remote }) => {
    const found = audit.filter((entry) => entry.by === who);
    if (found.some(({ reason }) => reason === "")) return [`${who}: "${what}" has an audit entry without a reason`];
    if (what.startsWith("move")) return exempt; // each run that it puts on trial has an entry
    const gone = mayBeForgotten(lost, requestedAt, at ?? 0);
    // Forks explain themselves in the new run. Pausing what is already paused changes nothing and is not recorded.
    const unchanged = what === "pause the singleton" && audit.some(({ action }) => action === "lease.pause");
    // Over the wire, a takeover or redrive whose response was lost is requested again. If it succeeds again, each one
    // is an action.
    if (/^(take|redrive|current)/.test(what) && remote && found.length > 1) return exempt;
    if (what.startsWith("fork") || at === undefined || gone || unchanged)
      return found.length > 1 ? [wrongCount(who, what, found.length)] : exempt;
    return found.length === 1 ? [] : [wrongCount(who, what, found.length)];
  });
  const known = new Set(actions.map(({ who }) => who));
  const entries = each(audit, ({ by, action }) => {
    if (by.endsWith(" again") || by === "rewinder") return exempt; // they follow the plan and are no operators
    if (by.startsWith("operator of ")) return exempt; // of queues: judged by their limits
    return known.has(by) ? [] : [`the audit has ${action} by ${by}, who took no action`];
  });
  return combine([acknowledged, entries]);
};

const wrongCount = (who: string, what: string, times: number): string => `${who}: "${what}" has ${times} audit entries`;

/** Every audit entry is sealed in one chain, and a change to any field of an entry breaks the chain. */
export const auditIsSealed: Invariant = ({ audit }) => {
  const entries = audit.toReversed();
  const { faults, checked } = checkAudit(entries);
  const unsealed = checked < entries.length ? [`${entries.length - checked} entries have no seal`] : [];
  const changes = [{ by: "nobody" }, { reason: "none" }, { action: "rest" }, { journal: 0 }, { at: 1 }];
  const unnoticed = changes.filter(
    (change) =>
      entries.length > 0 && checkAudit([{ ...entries[0]!, ...change }, ...entries.slice(1)]).faults.length === 0,
  );
  const couldChange = unnoticed.map(
    (change) => `${Object.keys(change).join()} can be changed without breaking the chain`,
  );
  return { judged: entries.length, faults: [...faults, ...unsealed, ...couldChange] };
};
