import { join } from "node:path";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { systemRandom } from "../../src/base/random.ts";
import { openStore } from "../../src/host/open-store.ts";
import { Tape } from "../../src/host/tape.ts";
import { isTapeError } from "../../src/model/errors.ts";
import { createRunner } from "../../src/sdk/workflow.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { dropDatabase, freshDatabase } from "../postgres/database.ts";
import { temporaryFolder } from "./stage.ts";

const stores: readonly [string, () => Promise<string>][] = [
  ["SQLite", async () => `sqlite:${join(await temporaryFolder(), "tape.db")}`],
  [
    "PostgreSQL",
    async () => {
      const url = await freshDatabase(inject("postgres18"));
      onTestFinished(() => dropDatabase(url));
      return url;
    },
  ],
];

/** Writes until a write is rejected, and returns the error code. The takeover may come at any point. */
async function writeUntilFenced(store: Store, id: string): Promise<{ written: number; code: string | undefined }> {
  const claimant = { owner: `owner of ${id}`, label: "holder", reactor: "agent", ttlMs: 60_000 };
  const [created] = await store.intake.createRuns("default", [{ id, workflow: "w", input: 1 }], {
    ...claimant,
    nonce: systemRandom.bits63(),
  });
  if (created?.ok !== true || created.term === undefined) throw new Error("no term");
  const { fence } = created.term;
  for (let head = 1; ; ) {
    try {
      const record = { kind: "step.done", data: { pos: head, name: "s", value: head } } as const;
      ({ head } = await store.fenced.append(fence, { after: head, records: [record] }));
    } catch (error) {
      return { written: head - 1, code: isTapeError(error) ? error.code : String(error) };
    }
  }
}

describe("an operator's takeover of a live holder, 200 times", () => {
  it.each(stores)("on %s: the holder is fenced and the audit log has every reason", async (_, database) => {
    const url = await database();
    const store = await openStore(url);
    const app = await Tape.open({ store: url, runner: createRunner({ workflows: [] }), work: false });
    onTestFinished(async () => {
      await app.close();
      await store.close();
    });
    const ids = Array.from({ length: 200 }, (__, k) => `run-${k}`);
    for (let k = 0; k < ids.length; k += 20) {
      await Promise.all(
        ids.slice(k, k + 20).map(async (id) => {
          const holder = writeUntilFenced(store, id);
          await expect.poll(() => app.runs.get(id)).toBeDefined();
          await app.leases.preempt({ run: id }, { by: "ada", reason: `it hangs: ${id}` });
          const { written, code } = await holder;
          expect(code).toBe("TAPE_FENCED");
          const records = await store.read.journal("default", { run: id });
          const steps = records.filter(({ kind }) => kind === "step.done");
          // Every acknowledged write is there, and the holder wrote nothing after the operator's token.
          expect(steps).toHaveLength(written);
          expect(records.slice(-3).map(({ kind }) => kind)).toEqual(["term.started", "operator.action", "term.ended"]);
          const terms = await app.leases.history({ run: id });
          expect(terms.at(-1)).toMatchObject({
            startReason: "manual",
            by: "ada",
            auditReason: `it hangs: ${id}`,
            endReason: "manual",
          });
        }),
      );
    }
    const audit = await store.read.audit("default", { limit: 1_000 });
    expect(audit).toHaveLength(200);
    expect(new Set(audit.map(({ reason }) => reason))).toEqual(new Set(ids.map((id) => `it hangs: ${id}`)));
    expect(audit.every(({ by, action }) => by === "ada" && action === "lease.takeover")).toBe(true);
  });
});
