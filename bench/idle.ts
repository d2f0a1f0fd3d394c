import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { startPostgres } from "../test/postgres/server.ts";
import type { IdleFigures } from "./idle-process.ts";
import type { BenchOptions } from "./run.ts";
import { say } from "./work.ts";

/** How long after the start idling counts as idling: caches are warm and the polls have backed off. */
const settleMs = 12_000;
const measureMs = 30_000;

/** What a process with all five reactors costs while nothing happens, on a real PostgreSQL. */
export async function benchIdle(_options: BenchOptions): Promise<object> {
  const server = await startPostgres({ major: 18, settings: {} });
  try {
    const file = fileURLToPath(new URL("idle-process.ts", import.meta.url));
    const child = fork(file, [server.url, String(settleMs), String(measureMs)], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    const figures = await new Promise<IdleFigures>((resolve, reject) => {
      child.once("message", (message) => resolve(message as IdleFigures));
      child.once("exit", (code) => reject(new Error(`the idle process ended with ${code} before it had measured`)));
    });
    for (const [text, count] of Object.entries(figures.statements)) say(`${count} × ${text}`);
    const { queriesPerSecond, cpuPercent, rssMb } = figures;
    say(`idle: ${queriesPerSecond} queries/s, ${cpuPercent} % CPU, ${rssMb} MB`);
    return { queriesPerSecond, cpuPercent, rssMb, seconds: measureMs / 1000 };
  } finally {
    await server.stop();
  }
}
