import { spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants } from "node:fs";
import { connect } from "node:net";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../../test/postgres/server.ts";

/** The redis-server of this machine, if it has one. */
export function redisProgram(): string | undefined {
  return (process.env.PATH ?? "")
    .split(delimiter)
    .map((folder) => join(folder, "redis-server"))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

/** A Redis that has every command on the disk before it responds. */
export async function startRedis(folder: string): Promise<{ readonly url: string; close(): Promise<void> }> {
  const port = await freePort();
  const flags = ["--port", String(port), "--bind", "127.0.0.1", "--dir", folder, "--save", ""];
  const durable = ["--appendonly", "yes", "--appendfsync", "always"];
  const child = spawn(redisProgram() ?? "redis-server", [...flags, ...durable], { stdio: "ignore" });
  const exited = once(child, "exit");
  for (let tries = 0; !(await answers(port)); tries++) {
    if (tries > 250 || child.exitCode !== null) throw new Error("redis-server did not start within 5 s");
    await sleep(20);
  }
  return {
    url: `redis://127.0.0.1:${port}`,
    async close() {
      child.kill("SIGKILL");
      await exited;
    },
  };
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}
