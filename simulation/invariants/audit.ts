import { checkAudit } from "../../src/store/audit.ts";
import { each, exempt, type Invariant, mayBeForgotten, together } from "./judge.ts";

/** Every manual action that was acknowledged is in the audit once, with who did it and why; no other deed is in it. */
export const actionsAreAudited: Invariant = ({ deeds, audit, lost }) => {
  const acknowledged = each(deeds, ({ who, what, at, asked, remote }) => {
    const found = audit.filter((entry) => entry.who === who);
    if (found.some(({ reason }) => reason === "")) return [`${who}: "${what}" has no reason in the audit`];
    const gone = mayBeForgotten(lost, asked, at ?? 0);
    // What asks a run's owner (a signal, a cancellation) and what makes a new run explain themselves.
    // Who pauses what is paused changes nothing, and is not written down.
    const idle = what === "pause the singleton" && audit.some(({ action }) => action === "lease.pause");
    // Over the wire a takeover or a redrive whose answer got lost is asked for again, and where there is again something
    // to do, happens again: each of them is a deed.
    if (/^(take|redrive)/.test(what) && remote && found.length > 1) return exempt;
    if (what.startsWith("fork") || at === undefined || gone || idle)
      return found.length > 1 ? [twice(who, what, found.length)] : exempt;
    return found.length === 1 ? [] : [twice(who, what, found.length)];
  });
  const known = new Set(deeds.map(({ who }) => who));
  const entries = each(audit, ({ who, action }) => {
    if (who.endsWith(" again") || who === "rewinder") return exempt; // they do as the plan says, and are no operators
    return known.has(who) ? [] : [`the audit has ${action} by ${who}, who did nothing`];
  });
  return together([acknowledged, entries]);
};

const twice = (who: string, what: string, times: number): string => `${who}: "${what}" is in the audit ${times} times`;

/** Every entry of the audit is sealed, in one chain; and a word that is changed in any of them would be noticed. */
export const auditIsSealed: Invariant = ({ audit }) => {
  const entries = audit.toReversed();
  const { faults, checked } = checkAudit(entries);
  const unsealed = checked < entries.length ? [`${entries.length - checked} entries have no seal`] : [];
  const changes = [{ who: "nobody" }, { reason: "none" }, { action: "rest" }, { journal: 0 }, { at: 1 }];
  const unnoticed = changes.filter(
    (change) =>
      entries.length > 0 && checkAudit([{ ...entries[0]!, ...change }, ...entries.slice(1)]).faults.length === 0,
  );
  const couldChange = unnoticed.map((change) => `${Object.keys(change).join()} could be changed unnoticed`);
  return { judged: entries.length, faults: [...faults, ...unsealed, ...couldChange] };
};
