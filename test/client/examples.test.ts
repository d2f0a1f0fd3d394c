import { expect, it } from "vitest";
import { memoryLedger } from "../../examples/ledger.ts";
import { isTapeError, Tape } from "../../src/exports/index.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { checkProjection } from "../../testkit/projection.ts";
import { cases, happened, runId, sendSignals } from "../examples/cases.ts";
import { serverOn } from "./stage.ts";

/** The examples, with a server between them and their store: the same world, the same outcomes. */
it.each(cases.map((case_) => [case_.name, case_] as const))("%s", async (_, case_) => {
  const world = memoryLedger();
  const behind = await openSqlite({ file: ":memory:" });
  const server = serverOn(behind, "default");
  const { workflow, runner } = case_.build(world);
  const app = await Tape.connect("http://127.0.0.1:1", { exchange: server.exchange, runner });
  const { budget } = case_;
  const handle = await app.start(workflow, case_.input as never, { id: runId, ...(budget && { budget }) });
  const settled = handle.result().catch((error: unknown) => error);
  await sendSignals(app, runId, case_);
  const outcome = await settled;
  expect((await app.runs.get(runId))?.status).toBe(case_.status);
  if (case_.status === "COMPLETED") expect(outcome).toEqual(case_.outcome);
  else expect(isTapeError(outcome, "TAPE_RUN_FAILED")).toBe(true);
  expect(happened(world).sort()).toEqual([...case_.world].sort());
  if (case_.name !== "import") expect(happened(world)).toEqual(case_.world); // its items go side by side
  await app.close();
  server.close();
  expect(await checkProjection(behind, ["default"])).toEqual([]);
  await behind.close();
});
