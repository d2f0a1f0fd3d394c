import { describe, expect, it } from "vitest";
import { toolApproval } from "../../src/agent/approval.ts";
import { crashAtEveryBoundary } from "../../testkit/kit/crash.ts";
import type { CrashRound } from "../../testkit/kit/round.ts";
import { noteRounds } from "../../tools/outside/rounds.ts";
import { openBlankStore } from "../blank-database.ts";
import { isSampled } from "../sample.ts";
import { treasury, versions } from "./treasury.ts";

/** What a reader keeps of the run's stream. */
async function shownText({ store, tenant, run }: CrashRound): Promise<string> {
  const [page] = await store.read.chunks(tenant, [{ run: run.id, stream: "parts", from: 0 }]);
  return page!.chunks.map((chunk) => ("value" in chunk ? (chunk.value as { text: string }).text : "")).join("");
}

const words = "I look it up. it is dueI pay it now. Paid 250 for invoice 2026-117.";

/** The first answer was received and not recorded. */
const lostCall = "before fenced.append #2";

describe.each(versions)("an agent of AI SDK $sdk", (version) => {
  it.each(["generate", "stream"] as const)(
    "%s: pays once, whatever boundary it crashes at",
    { timeout: 180_000 },
    async (mode) => {
      const { chat, runner, bank, model } = treasury(version, mode, { strict: true, approve: true });
      let lost = 0;
      let paidOnce = -1; // the round without a crash is not counted
      const report = await crashAtEveryBoundary({
        workflow: chat,
        input: "Pay invoice 2026-117",
        runner,
        ledger: bank,
        openStore: openBlankStore,
        signals: [{ gate: toolApproval, value: { approved: true }, times: "always" }],
        fresh: () => {
          model.calls = 0;
        },
        only: (boundary, index) => boundary === lostCall || isSampled(index, 6),
        check: async (round) => {
          const { store, tenant, run } = round;
          expect(run.status).toBe("COMPLETED");
          expect(bank.applied("pay")).toHaveLength(1);
          paidOnce++;
          expect(model.calls).toBeLessThanOrEqual(4); // 3 without a crash, and the one that was lost
          const kinds = (await store.read.journal(tenant, { run: run.id })).map(({ kind }) => kind);
          expect(kinds.filter((kind) => kind === "decision.made")).toHaveLength(3); // a zombie's is refused
          // The lost call is on the bill. One that was not made yet may be, because no process knows.
          const presumed = kinds.filter((kind) => kind === "budget.presumed").length;
          expect(presumed).toBeGreaterThanOrEqual(model.calls - 3);
          expect(presumed).toBeLessThanOrEqual(1);
          lost += model.calls - 3;
          expect(await shownText(round)).toBe(mode === "stream" ? words : ""); // as are a zombie's chunks
        },
      });
      expect(report.reached).toBe(report.rounds);
      expect(report.rounds).toBeGreaterThan(15);
      expect(lost).toBeGreaterThan(0);
      const { boundaries, rounds } = report;
      noteRounds({ framework: `AI SDK ${version.sdk}`, agent: mode, boundaries: boundaries.length, rounds, paidOnce });
    },
  );
});
