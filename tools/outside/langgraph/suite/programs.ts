import { setTimeout as delay } from "node:timers/promises";
import { type Runner, Tape } from "durable-tape";
import { afterEach } from "vitest";

const apps: Tape[] = [];
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});

/** A program with this runner, until the test ends. */
export async function open(runner: Runner): Promise<Tape> {
  const app = await Tape.open({ store: "memory:", runner });
  apps.push(app);
  return app;
}

/** The input of an agent. */
export const user = (content: string) => ({ messages: [{ role: "user" as const, content }] });

/** Waits until the run is at a gate of this name. */
export async function gateOf(app: Tape, run: string, name: string): Promise<{ payload: unknown }> {
  for (;;) {
    const found = (await app.gates.list({ run })).find((gate) => gate.name === name);
    if (found !== undefined) return { payload: found.payload };
    await delay(5);
  }
}
