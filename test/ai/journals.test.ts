import { describe, expect, it, onTestFinished } from "vitest";
import { toolApproval } from "../../src/agent/approval.ts";
import { VirtualTape } from "../../testkit/kit/virtual-tape.ts";
import { type KeptJournal, keptJournals, prompt, recordsIn } from "./journals.ts";
import { treasury } from "./treasury.ts";

/** A run with this history, whose process has died. */
async function runWith(kept: KeptJournal) {
  const agent = treasury(kept.version, kept.mode, { strict: true, approve: true });
  const tape = await VirtualTape.open({ runner: agent.runner, log: "silent" });
  onTestFinished(() => tape.close());
  const { store, time } = tape;
  const claimant = { owner: "earlier", label: "earlier", reactor: "agent", ttlMs: 1_000, nonce: 7n };
  const spec = { id: "run", workflow: "chat", input: prompt };
  const [created] = await time.during(store.intake.createRuns(tape.tape.tenant, [spec], claimant));
  if (created?.ok !== true || created.term === undefined) throw new Error("the run was not created");
  const { fence, head } = created.term;
  await time.during(store.fenced.append(fence, { after: head, records: recordsIn(kept) }));
  await tape.elapse(60_000);
  return { ...agent, tape };
}

describe("a journal of an earlier version", () => {
  it("exists for both versions of the SDK and both ways to call it", () => {
    expect(new Set(keptJournals.map(({ version, mode }) => `${version.sdk} ${mode}`)).size).toBe(4);
  });

  it.each(keptJournals)("$file is replayed, and the agent continues", async (kept) => {
    const { tape, model, bank } = await runWith(kept);
    expect(model.calls).toBe(0);
    const [open] = await tape.time.during(tape.tape.gates.list({ run: "run" }));
    await tape.time.during(
      tape.tape.signal("run", toolApproval, { approved: true }, { binds: open!.binds, mustMatch: true }),
    );
    const [view] = await tape.settle();
    expect(view).toMatchObject({ status: "COMPLETED", outcome: expect.stringContaining("Paid 250") });
    expect(model.calls).toBe(1); // the third one; two are in the journal
    expect(bank.applied("pay")).toHaveLength(1);
  });
});
