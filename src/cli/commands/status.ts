import { TapeError } from "../../model/errors.ts";
import type { QueueView } from "../../store/contract/store.ts";
import { outputOption, storeOptions, withApp } from "../app.ts";
import type { Command } from "../command.ts";
import { lasting, printJson, wantsJson } from "../output.ts";
import { diagnose, unservedText } from "./doctor.ts";
import { mcpFindings } from "./doctor-mcp.ts";
import type { Finding } from "./finding.ts";
import { queueState, slotsText } from "./queue-text.ts";
import { liveStatuses, readOverview, type StoreOverview } from "./store-overview.ts";

const status: Command = {
  name: "status",
  summary: "shows runs, effects in doubt, gates and leases; exits 3 if anything is UNKNOWN or STUCK",
  options: { ...storeOptions, ...outputOption },
  run: (invocation) =>
    withApp(invocation, async ({ store, tenant, url }) => {
      const overview = await readOverview(store, tenant);
      if (wantsJson(invocation)) printJson(invocation, { store: url, ...overview });
      else for (const line of linesOf(overview)) invocation.screen.line(line);
      return overview.needsAttention > 0 ? 3 : 0;
    }),
};

function linesOf(overview: StoreOverview): string[] {
  const { runs, inDoubt, openGates, held, stale, overdue, maxCount } = overview;
  const countText = (count: number): string => (count >= maxCount ? `${maxCount} or more` : String(count));
  const counts = liveStatuses.map((phase) => `${phase} ${countText(runs[phase] ?? 0)}`);
  const lines = [
    `runs      ${counts.join("  ")}`,
    `in doubt  effects UNKNOWN ${inDoubt.effectsUnknown}, STUCK ${inDoubt.effectsStuck}; obligations UNKNOWN ${inDoubt.obligationsUnknown}, STUCK ${inDoubt.obligationsStuck}`,
    `gates     ${countText(openGates)} waiting for approval`,
    `leases    ${countText(held)} held, ${stale.length} expired`,
  ];
  for (const queue of overview.queues) if (isActive(queue)) lines.push(`queue     ${queueText(queue, overview.now)}`);
  for (const workflow of overview.unserved) lines.push(`unserved  ${unservedText(workflow)}`);
  if (overdue.length > 0) lines.push(`due       now, for ${overdue.join(", ")}`);
  if (overview.needsAttention > 0) {
    lines.push("", "Needs attention: durable-tape effects --status UNKNOWN,STUCK; durable-tape runs --status STUCK");
  }
  return lines;
}

const isActive = ({ running, waiting, paused }: QueueView): boolean => running + waiting > 0 || paused !== undefined;

function queueText(queue: QueueView, now: number): string {
  const { name, running, waiting, more, limits, oldestWaitMs } = queue;
  const waits = `${waiting}${more ? " or more" : ""} waiting`;
  const oldest = oldestWaitMs === undefined ? [] : [`oldest ${lasting(oldestWaitMs)}`];
  const state = queueState(queue, now);
  const parts = [
    `${slotsText(running, limits.concurrency)} running`,
    waits,
    ...oldest,
    ...(state === "" ? [] : [state]),
  ];
  return `${name}: ${parts.join(", ")}`;
}

const doctor: Command = {
  name: "doctor",
  summary: "checks Node, configuration, store, clock, leases and reactors, with a fix for each problem",
  options: {
    mcp: { value: "COMMAND|URL", help: "instead: lists an MCP server's tools, and which policies their hints suggest" },
    ...storeOptions,
    ...outputOption,
  },
  run: async (invocation) => {
    const server = invocation.text("mcp");
    let findings: readonly Finding[];
    try {
      findings =
        server === undefined
          ? await withApp(invocation, ({ store, tenant, url }) => diagnose(store, tenant, url))
          : await mcpFindings(server);
    } catch (error) {
      if (!(error instanceof TapeError)) throw error;
      findings = [
        { check: server === undefined ? "store" : "mcp", state: "fail", message: error.message, next: error.next },
      ];
    }
    if (wantsJson(invocation)) printJson(invocation, findings);
    else {
      const { screen } = invocation;
      const marks = { ok: screen.good("ok  "), warn: screen.bold("warn"), fail: screen.bad("fail") };
      const width = Math.max(...findings.map(({ check }) => check.length));
      for (const { check, state, message, next } of findings) {
        screen.line(`${marks[state]}  ${check.padEnd(width)}  ${message}`);
        if (next !== undefined) screen.line(`      ${" ".repeat(width)}  ${screen.dim(next)}`);
      }
    }
    if (findings.some(({ check, state }) => check === "attention" && state !== "ok")) return 3;
    return findings.some(({ state }) => state === "fail") ? 1 : 0;
  },
};

export const statusCommands: readonly Command[] = [status, doctor];
