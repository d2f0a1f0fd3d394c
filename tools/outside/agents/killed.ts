import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

const { onTestFinished } = globalThis as unknown as typeof import("vitest");

/** How a program ended each time, what the bank has paid, and what the program printed. */
export interface KilledProgram {
  readonly ends: readonly string[];
  readonly payments: readonly string[];
  readonly answer: string;
}

/** Runs a program twice, as real processes: the first one dies at the point of `bank.ts` that `KILL` names. */
export async function killed(
  program: string,
  point: string,
  options: Readonly<Record<string, string>> = {},
): Promise<KilledProgram> {
  const folder = mkdtempSync(join(tmpdir(), "tape-pay-once-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const places = { STORE: `sqlite:${join(folder, "tape.db")}`, BANK_FILE: join(folder, "bank") };
  const ends: string[] = [];
  let answer = "";
  for (const KILL of [point, ""]) {
    const env = { ...process.env, ...options, ...places, KILL };
    const child = spawn(process.execPath, [program], { env, stdio: ["ignore", "pipe", "pipe"] });
    let errors = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (answer += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text));
    const [code, signal] = await new Promise<[number | null, string | null]>((resolve) =>
      child.once("close", (...end) => resolve(end)),
    );
    ends.push(signal ?? `exit code ${code}`);
    if (code !== 0 && signal === null) throw new Error(errors);
  }
  const payments = readFileSync(places.BANK_FILE, "utf8").trim().split("\n");
  console.log(`${basename(program)}: killed ${point}, resumed: ${payments.length} payments; "${answer.trim()}"`);
  return { ends, payments, answer: answer.trim() };
}
