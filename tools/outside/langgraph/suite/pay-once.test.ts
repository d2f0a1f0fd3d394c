import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** Runs a program twice, as real processes: the first one dies at a point. */
async function killed(point: string, program: string, STREAM = "no") {
  const folder = mkdtempSync(join(tmpdir(), "tape-pay-once-"));
  folders.push(folder);
  const ends: string[] = [];
  let answer = "";
  for (const KILL of [point, ""]) {
    const env = {
      ...process.env,
      KILL,
      STREAM,
      STORE: `sqlite:${join(folder, "tape.db")}`,
      BANK_FILE: join(folder, "bank"),
    };
    const child = spawn(process.execPath, [join(import.meta.dirname, "..", "pay-once", `${program}.ts`)], {
      ...{ env, stdio: ["ignore", "pipe", "pipe"] },
    });
    let errors = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (answer += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text));
    const [code, signal] = await new Promise<[number | null, string | null]>((resolve) =>
      child.once("close", (...end) => resolve(end)),
    );
    ends.push(signal ?? `exit code ${code}`);
    if (code !== 0 && signal === null) throw new Error(errors);
  }
  const payments = readFileSync(join(folder, "bank"), "utf8").trim().split("\n");
  console.log(`${program}: killed ${point}, resumed: ${payments.length} payments; "${answer.trim()}"`);
  return { ends, payments, answer: answer.trim() };
}

const done = { ends: ["SIGKILL", "exit code 0"], answer: "Invoice 7 is paid: all done" };

it("an agent with a checkpointer pays twice, because LangGraph runs the interrupted node again", async () => {
  expect(await killed("after payment", "checkpointer")).toEqual({ ...done, payments: ["7", "7"] });
});

it("the same agent in a run pays once", async () => {
  expect(await killed("after payment", "run")).toEqual({ ...done, payments: ["7"] });
});

describe.concurrent("wherever the process dies, the agent in a run pays once", { timeout: 300_000 }, () => {
  it.each([
    ...["in model call 1", "in model call 2", "in model call 3", "in search", "before payment"].map((point) => [
      point,
      "no",
    ]),
    ...["at word 2 of turn 1", "at word 3 of turn 2", "at word 4 of turn 3", "after payment"].map((point) => [
      point,
      "yes",
    ]),
  ])("%s (stream: %s)", async (point, stream) => {
    expect(await killed(point!, "run", stream)).toEqual({ ...done, payments: ["7"] });
  });
});
