import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import { Tape } from "../../src/host/tape.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { program, temporaryFolder } from "./stage.ts";

const sum = workflow("sum", async (tape, input: number[]) => tape.step("add", () => input.length));

it("retention: what is due, what was archived, and a run from the archive", async () => {
  const folder = await temporaryFolder();
  const file = join(folder, "tape.db");
  const runner = createRunner({ workflows: [sum] });
  const open = (more: object = {}): Promise<Tape> =>
    Tape.open({ store: `sqlite:${file}`, runner, log: "silent", ...more });
  const first = await open();
  await first.call(sum, [1, 2], { id: "s1" });
  await first.close();
  const db = new DatabaseSync(file);
  db.exec("update runs set ended_at = ended_at - 60000"); // a run that ended just now is not dated yet
  db.close();
  const settings = join(folder, "tape.yaml");
  await writeFile(
    settings,
    `tape:\n  store: { url: "sqlite:./tape.db" }\n  retention: { archive: "file:./archive" }\n`,
  );
  const tape = (...args: string[]) => program(...args, "--config", settings);
  expect((await tape("retention")).stdout).toContain("no reactor retention has worked here");
  const app = await open({
    retention: { archive: `file:${join(folder, "archive")}`, default: "1s", interval: "20ms" },
  });
  try {
    await expect.poll(async () => (await app.store.read.archived("default")).length, { timeout: 20_000 }).toBe(1);
  } finally {
    await app.close();
  }
  expect((await tape("retention")).stdout).toMatch(/0 trees due[\s\S]*last pass/);
  expect((await tape("doctor")).stdout).toMatch(/archive +default 1s; nothing is overdue, last pass/);
  expect((await tape("archived")).stdout).toMatch(/^RUN .*\ns1 .*default\/.*\.jsonl\.gz/);
  expect((await tape("inspect", "s1", "--archive")).stdout).toMatch(
    /s1 {2}COMPLETED {2}sum[\s\S]*run\.created[\s\S]*step\.done/,
  );
  expect(await tape("inspect", "s2", "--archive")).toMatchObject({ code: 1 });
  expect((await tape("retention", "run", "--reason", "drill")).stdout).toContain("requested");
});
