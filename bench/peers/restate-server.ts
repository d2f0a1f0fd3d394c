import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** A running Restate server, and how to start a process that can reach it. */
export interface RestateServer {
  readonly ingress: string;
  readonly pid: number;
  /** Put before a command, it runs that command where the server is. */
  readonly prefix: readonly string[];
  readonly isolated: boolean;
  stop(): Promise<void>;
}

const binary = join(
  import.meta.dirname,
  `node_modules/@restatedev/restate-server-${process.platform}-${process.arch}/bin/restate-server`,
);

/**
 * With its defaults, which are durable, in a network namespace that has nothing but a loopback interface: the server
 * calls home when it can. Where namespaces cannot be had, it runs without one. Undefined where it has no build.
 */
export async function startRestate(folder: string): Promise<RestateServer | undefined> {
  if (!existsSync(binary)) return undefined;
  const isolated = spawnSync("unshare", ["-n", "--", "sh", "-c", "ip link set lo up"]).status === 0;
  const flags = ["--base-dir", folder, "--no-logo", "--node-name", "bench"];
  const command = isolated
    ? ["unshare", "-n", "--", "sh", "-c", 'ip link set lo up && exec "$0" "$@"', binary, ...flags]
    : [binary, ...flags];
  const child = spawn(command[0]!, command.slice(1), {
    stdio: ["ignore", "ignore", "ignore"],
    env: { ...process.env, RESTATE_LOG_FILTER: "warn" },
  });
  const prefix = isolated ? ["nsenter", "-t", String(child.pid), "-n", "--"] : [];
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  const answers = `fetch("http://127.0.0.1:9070/health").then((a) => process.exit(a.ok ? 0 : 1), () => process.exit(1))`;
  for (const until = performance.now() + 60_000; ; ) {
    await sleep(300);
    if (child.exitCode !== null) throw new Error(`the Restate server ended with ${child.exitCode}`);
    const probe = [...prefix, process.execPath, "-e", answers];
    if (spawnSync(probe[0]!, probe.slice(1)).status === 0) break;
    if (performance.now() > until) throw new Error("the Restate server did not answer within a minute");
  }
  return {
    ingress: "http://127.0.0.1:8080",
    pid: child.pid ?? 0,
    prefix,
    isolated,
    async stop() {
      const exited = once(child, "exit");
      child.kill("SIGTERM");
      const timer = setTimeout(kill, 10_000);
      await exited;
      clearTimeout(timer);
      process.off("exit", kill);
    },
  };
}
