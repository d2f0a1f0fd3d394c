import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

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
  const places = { ...options, STORE: `sqlite:${join(folder, "tape.db")}`, BANK_FILE: join(folder, "bank") };
  try {
    const first = await ended(program, { ...places, KILL: point });
    const second = await ended(program, { ...places, KILL: "" });
    const payments = readFileSync(places.BANK_FILE, "utf8").trim().split("\n");
    const answer = `${first.printed}${second.printed}`.trim();
    console.log(`${basename(program)}: killed ${point}, resumed: ${payments.length} payments; "${answer}"`);
    return { ends: [first.how, second.how], payments, answer };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function ended(
  program: string,
  env: Readonly<Record<string, string>>,
): Promise<{ how: string; printed: string }> {
  const child = spawn(process.execPath, [program], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let printed = "";
  let errors = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (printed += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text));
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve) =>
    child.once("close", (...end) => resolve(end)),
  );
  if (code !== 0 && signal === null) throw new Error(errors);
  return { how: signal ?? `exit code ${code}`, printed };
}
