import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished, vi } from "vitest";

interface Turn {
  readonly label: string;
  readonly shard: number;
  readonly token: string;
}

const patience = { timeout: 60_000, interval: 50 };

it("shards of a killed process go to the others, and never back to an older token", { timeout: 120_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "tape-shards-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const ledger = join(folder, "ledger");
  const turns = (): Turn[] =>
    existsSync(ledger)
      ? readFileSync(ledger, "utf8")
          .split("\n")
          .filter((line) => line.endsWith("}"))
          .map((line) => JSON.parse(line) as Turn)
      : [];
  const start = async (label: string) => {
    const path = fileURLToPath(new URL("shards-worker.ts", import.meta.url));
    const child = fork(path, [`sqlite:${join(folder, "tape.db")}`, ledger, label], {
      execArgv: [],
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    await once(child, "message");
    return child;
  };
  const first = await start("first");
  await start("second");
  const shardsOf = (label: string, from: number) =>
    new Set(
      turns()
        .slice(from)
        .flatMap((turn) => (turn.label === label ? [turn.shard] : [])),
    );
  // A replica that joins gets its share, which the first one sheds.
  await vi.waitFor(() => expect(shardsOf("second", 0).size).toBeGreaterThanOrEqual(3), patience);
  first.kill("SIGKILL");
  await once(first, "exit");
  const killedAt = turns().length;
  await vi.waitFor(() => expect(shardsOf("second", killedAt).size).toBe(8), patience);
  expect(shardsOf("first", killedAt).size).toBe(0);
  const highest = new Map<number, bigint>();
  for (const { shard, token } of turns()) {
    expect(BigInt(token)).toBeGreaterThanOrEqual(highest.get(shard) ?? 0n);
    highest.set(shard, BigInt(token));
  }
});
