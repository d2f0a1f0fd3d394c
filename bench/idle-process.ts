import pg from "pg";
import { Tape } from "../src/host/tape.ts";
import { effect } from "../src/sdk/effect.ts";
import { createRunner, workflow } from "../src/sdk/workflow.ts";

export interface IdleFigures {
  readonly queriesPerSecond: number;
  readonly cpuPercent: number;
  readonly rssMb: number;
  /** How often each statement was sent. */
  readonly statements: Readonly<Record<string, number>>;
}

/** Counts every statement that reaches the wire at the driver, below all code of Tape. */
let counting = false;
const statements: Record<string, number> = {};
const { query } = pg.Client.prototype;
pg.Client.prototype.query = function counted(this: pg.Client, ...args: unknown[]): never {
  if (counting) {
    const [first] = args as [string | { name?: string; text?: string }];
    const text = typeof first === "string" ? first : (first.name ?? first.text ?? "?");
    const short = text.replace(/\s+/g, " ").slice(0, 60);
    statements[short] = (statements[short] ?? 0) + 1;
  }
  return query.apply(this, args as never) as never;
} as typeof query;

const [url = "", settleMs = "0", measureMs = "0"] = process.argv.slice(2);
const wire = effect("bank.wire", async (amount: number) => amount, { semantics: "idempotent", dispatch: "outbox" });
const pay = workflow("pay", async (tape, amount: number) => {
  await tape.sleep(50);
  return tape.effect(wire.with(amount));
});
const app = await Tape.open({ store: url, runner: createRunner({ workflows: [pay], effects: [wire] }) });
await (await app.start(pay, 1)).result(); // every reactor has had something to do before it idles
await new Promise((resolve) => setTimeout(resolve, Number(settleMs)));
counting = true;
const cpu = process.cpuUsage();
const started = performance.now();
await new Promise((resolve) => setTimeout(resolve, Number(measureMs)));
const ms = performance.now() - started;
const { user, system } = process.cpuUsage(cpu);
counting = false;
const sent = Object.values(statements).reduce((sum, count) => sum + count, 0);
const round = (value: number): number => Math.round(value * 100) / 100;
const figures: IdleFigures = {
  queriesPerSecond: round((sent * 1000) / ms),
  cpuPercent: round((user + system) / 10 / ms),
  rssMb: Math.round(process.memoryUsage.rss() / 1e6),
  statements,
};
process.send?.(figures);
await app.close();
process.disconnect?.();
