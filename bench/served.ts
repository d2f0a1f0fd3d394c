import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";

/** A Tape server in a process of its own. */
export interface ServedStore {
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

export async function startServer(store: string): Promise<ServedStore> {
  const child: ChildProcess = fork(join(import.meta.dirname, "remote-server.ts"), [store]);
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const url = await new Promise<string>((resolve, reject) => {
    child.once("message", (message) => resolve(String(message)));
    child.once("exit", (code) => reject(new Error(`the server exited with ${code}`)));
  });
  return {
    url,
    pid: child.pid ?? 0,
    async stop() {
      child.kill("SIGTERM");
      await exited;
    },
  };
}
