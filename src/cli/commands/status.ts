import { TapeError } from "../../model/errors.ts";
import type { RunStatus } from "../../model/machines.ts";
import { outputOption, storeOptions, withApp } from "../app.ts";
import type { Command } from "../command.ts";
import { printJson, wantsJson } from "../output.ts";
import { diagnose, type Finding, unservedText } from "./doctor.ts";
import { readOverview, type StoreOverview } from "./store-overview.ts";

const live: readonly RunStatus[] = ["RUNNABLE", "RUNNING", "WAITING", "ENDING", "COMPENSATING", "STUCK"];

const status: Command = {
  name: "status",
  summary: "the daily look: runs, doubts, gates, leases; exit code 3 if something is UNKNOWN or STUCK",
  options: { ...storeOptions, ...outputOption },
  run: (invocation) =>
    withApp(invocation, async ({ store, tenant, url }) => {
      const outlook = await readOverview(store, tenant);
      if (wantsJson(invocation)) printJson(invocation, { store: url, ...outlook });
      else for (const line of linesOf(outlook)) invocation.screen.line(line);
      return outlook.inDoubt > 0 ? 3 : 0;
    }),
};

function linesOf(outlook: StoreOverview): string[] {
  const { runs, doubts, openGates, held, stale, overdue, full } = outlook;
  const figure = (count: number): string => (count >= full ? `${full} or more` : String(count));
  const counts = live.map((phase) => `${phase} ${figure(runs[phase] ?? 0)}`);
  const lines = [
    `runs    ${counts.join("  ")}`,
    `doubts  effects UNKNOWN ${doubts.effectsUnknown}, STUCK ${doubts.effectsStuck}; obligations UNKNOWN ${doubts.obligationsUnknown}, STUCK ${doubts.obligationsStuck}`,
    `gates   ${figure(openGates)} wait for a person`,
    `leases  ${figure(held)} held, ${stale.length} of them by somebody whose time has run out`,
  ];
  for (const one of outlook.unserved) lines.push(`nobody  ${unservedText(one)}`);
  if (overdue.length > 0) lines.push(`due     now, for ${overdue.join(", ")}`);
  if (outlook.inDoubt > 0) {
    lines.push("", "A person is needed: durable-tape effects --status UNKNOWN,STUCK; durable-tape runs --status STUCK");
  }
  return lines;
}

const doctor: Command = {
  name: "doctor",
  summary: "checks Node, settings, store, clock, leases, doubts and reactors; each finding says what to do",
  options: { ...storeOptions, ...outputOption },
  run: async (invocation) => {
    let findings: readonly Finding[];
    try {
      findings = await withApp(invocation, ({ store, tenant, url }) => diagnose(store, tenant, url));
    } catch (error) {
      if (!(error instanceof TapeError)) throw error;
      findings = [{ about: "store", state: "bad", says: error.message, next: error.next }];
    }
    if (wantsJson(invocation)) printJson(invocation, findings);
    else {
      const { screen } = invocation;
      const width = Math.max(...findings.map(({ about }) => about.length));
      for (const { about, state, says, next } of findings) {
        const mark = { fine: screen.good("fine"), look: screen.bold("look"), bad: screen.bad("bad ") }[state];
        screen.line(`${mark}  ${about.padEnd(width)}  ${says}`);
        if (next !== undefined) screen.line(`      ${" ".repeat(width)}  ${screen.dim(next)}`);
      }
    }
    if (findings.some(({ about, state }) => about === "doubts" && state !== "fine")) return 3;
    return findings.some(({ state }) => state === "bad") ? 1 : 0;
  },
};

export const statusCommands: readonly Command[] = [status, doctor];
