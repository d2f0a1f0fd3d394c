import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../base/clock.ts";
import { silentLog } from "../../base/log.ts";
import { openStore } from "../../host/open-store.ts";
import { Tape } from "../../host/tape.ts";
import { createRunner } from "../../sdk/workflow.ts";
import { buildRunner } from "../demo/treasury/agent.ts";
import { fileLedger } from "../demo/treasury/ledger.ts";
import type { Screen } from "../screen.ts";
import { version } from "../version.ts";
import { serveNear } from "./address.ts";
import { drawFrame, paymentLines, plainPaint, terminalPaint, worldLine } from "./frame.ts";
import { openPage } from "./page.ts";
import { Stop } from "./stop.ts";
import { isInteractive, Live, onKeys } from "./terminal.ts";
import { type Deed, Treasury } from "./treasury.ts";

/** Short, so that a takeover is seen while one watches; 30 s is the default elsewhere. */
const ttlMs = 2_000;
/** Long enough to press a key, and far below the 10 s after which the wire is given up. */
const answerMs = 4_000;
const lookMs = 100;
/** Columns of the band where no terminal says how wide it is. */
const textWidth = 76;

const keys = "k kill it mid-wire · z make a zombie · u lose the answer · o open page · q quit";
const deeds: Readonly<Record<string, Deed>> = { k: "kill", z: "zombie", u: "lose" };

export interface PlayOptions {
  readonly screen: Screen;
  readonly place: { readonly host: string; readonly port: number };
  /** Plays one payment with a kill, and ends. */
  readonly once: boolean;
}

/** The built-in treasury, in a folder of its own that goes when it ends. */
export async function playTreasury({ screen, place, once }: PlayOptions): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), "tape-dev-"));
  try {
    return await play(folder, { screen, place, once });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function play(folder: string, { screen, place, once }: PlayOptions): Promise<number> {
  const clock = systemClock;
  const url = `sqlite:${join(folder, "tape.db")}`;
  const worldFile = join(folder, "world.jsonl");
  const lively = isInteractive();
  const store = await openStore(url, { log: silentLog });
  const { serving, taken } = await serveNear(store, place, { log: silentLog, version, runner: buildRunner() });
  const app = await Tape.open({ store, runner: createRunner({ workflows: [] }), work: false });
  const paint = lively && process.env.NO_COLOR === undefined ? terminalPaint : plainPaint;
  const head = [
    `Tape dev ${version}`,
    `  page    ${serving.url}${taken === undefined ? "" : `  (${taken} is taken)`}`,
    `  store   ${url}  (goes when this ends)`,
    `  runner  the treasury: two workers, five reactors in each, leases of ${ttlMs / 1_000} s`,
    `  look    durable-tape runs --store ${serving.url}`,
  ];
  const told: string[] = [];
  let now = await store.read.now();
  const live = new Live(process.stdout, clock, (columns, rows) =>
    drawFrame({ head, told, keys, now, columns, rows, payments: treasury.payments, workers: treasury.workers }, paint),
  );
  const tell = (line: string): void => {
    told.push(line);
    if (lively) live.draw();
    else screen.line(`  ${line}`);
  };
  const world = fileLedger(worldFile);
  const treasury = new Treasury({ app, url, world, worldFile, clock, ttlMs, answerMs, tell });
  using stop = new Stop(() => treasury.kill());
  const release = lively ? onKeys((key) => onKey(key, { treasury, stop, tell, url: serving.url })) : () => {};
  try {
    if (!lively) for (const line of [...head, ""]) screen.line(line);
    const alone = once || !lively;
    await treasury.pay(alone ? "kill" : undefined);
    while (!stop.signal.aborted) {
      await treasury.look();
      now = await store.read.now();
      if (lively) live.draw();
      if (alone && treasury.done) break;
      await clock.sleep(lookMs, stop.signal);
    }
    if (stop.signal.aborted) tell("stopping: the workers drain and give back what they hold");
  } finally {
    await treasury.quit();
    await treasury.look();
    release();
    if (lively) live.leave();
    await serving.stop();
    await app.close();
    await store.close();
  }
  const { payments } = treasury;
  for (const payment of payments) {
    screen.line();
    if (!lively) for (const line of paymentLines(payment, now, textWidth, paint)) screen.line(line);
    screen.line(`${payment.run}: ${payment.status}${payment.endedAt === undefined ? ", unfinished" : ""}`);
    screen.line(worldLine(payment, paint));
  }
  return payments.every(({ wires, endedAt }) => (endedAt === undefined ? wires <= 1 : wires === 1)) ? 0 : 1;
}

interface KeyGround {
  readonly treasury: Treasury;
  readonly stop: Stop;
  readonly tell: (line: string) => void;
  readonly url: string;
}

function onKey(key: string, { treasury, stop, tell, url }: KeyGround): void {
  const deed = deeds[key];
  if (key === "q") stop.ask();
  if (key === "o") openPage(url, tell);
  if (deed === undefined || stop.signal.aborted) return;
  if (deed === "zombie" && process.platform === "win32") tell("Windows has no SIGSTOP: no zombie there");
  else treasury.press(deed).catch((error: unknown) => tell(`it could not be started: ${String(error)}`));
}
