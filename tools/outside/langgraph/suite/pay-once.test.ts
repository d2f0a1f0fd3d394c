import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** Runs a program twice, as real processes: the first one dies just after the payment. */
async function killedAfterPayment(program: string) {
  const folder = mkdtempSync(join(tmpdir(), "tape-pay-once-"));
  folders.push(folder);
  const ends: string[] = [];
  let answer = "";
  for (const KILL of ["after payment", ""]) {
    const env = { ...process.env, KILL, STORE: `sqlite:${join(folder, "tape.db")}`, BANK_FILE: join(folder, "bank") };
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
  console.log(`${program}: killed after the payment, resumed: ${payments.length} payments; "${answer.trim()}"`);
  return { ends, payments, answer: answer.trim() };
}

const done = { ends: ["SIGKILL", "exit code 0"], answer: "Invoice 7 is paid: all done" };

it("an agent with a checkpointer pays twice, because LangGraph runs the interrupted node again", async () => {
  expect(await killedAfterPayment("checkpointer")).toEqual({ ...done, payments: ["7", "7"] });
});

it("the same agent in a run pays once", async () => {
  expect(await killedAfterPayment("run")).toEqual({ ...done, payments: ["7"] });
});
