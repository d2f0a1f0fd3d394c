import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../base/clock.ts";
import { silentLog } from "../../base/log.ts";
import { openStore } from "../../host/open-store.ts";
import { Tape } from "../../host/tape.ts";
import { createRunner } from "../../sdk/workflow.ts";
import type { Store } from "../../store/contract/store.ts";
import { buildRunner } from "../demo/treasury/agent.ts";
import { fileLedger } from "../demo/treasury/ledger.ts";
import type { Screen } from "../screen.ts";
import { version } from "../version.ts";
import { serveNear } from "./address.ts";
import { Buttons } from "./buttons.ts";
import { drawFrame, type FramePaint, paymentLines, plainPaint, terminalPaint, worldLine } from "./frame.ts";
import { openPage } from "./page.ts";
import { Stop } from "./stop.ts";
import { isInteractive, Live, onKeys } from "./terminal.ts";
import { type Fault, type Payment, Treasury } from "./treasury.ts";

/** Short, so that a takeover is seen while one watches; 30 s is the default elsewhere. */
const ttlMs = 2_000;
/** Long enough to press a key, and far below the 10 s after which the wire is given up. */
const responseMs = 4_000;
const observeMs = 100;
/** Columns of the band where no terminal says how wide it is. */
const textWidth = 76;

const keys = "k kill it mid-wire · z make a zombie · u lose the answer · o open page · q quit";
const faultKeys: Readonly<Record<string, Fault>> = { k: "kill", z: "zombie", u: "lose" };

export interface TreasuryDemoOptions {
  readonly screen: Screen;
  readonly place: { readonly host: string; readonly port: number };
  /** Plays one payment with a kill, and ends. */
  readonly once: boolean;
}

/** The built-in treasury, in a folder of its own that goes when it ends. */
export async function runTreasuryDemo({ screen, place, once }: TreasuryDemoOptions): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), "tape-dev-"));
  try {
    return await play(folder, { screen, place, once });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function play(folder: string, { screen, place, once }: TreasuryDemoOptions): Promise<number> {
  const url = `sqlite:${join(folder, "tape.db")}`;
  const store = await openStore(url, { log: silentLog });
  try {
    const { serving, taken } = await serveNear(store, place, {
      log: silentLog,
      version,
      dev: true,
      runner: buildRunner(),
    });
    await using _ = serving;
    const head = [
      `Tape dev ${version}`,
      `  page    ${serving.url}${taken === undefined ? "" : `  (${taken} is taken)`}`,
      `  store   ${url}  (goes when this ends)`,
      `  runner  the treasury: two workers, five reactors in each, leases of ${ttlMs / 1_000} s`,
      `  look    npx durable-tape runs --store ${serving.url}`,
    ];
    return await direct({ screen, store, url, page: serving.url, head, once, worldFile: join(folder, "world.jsonl") });
  } finally {
    await store.close();
  }
}

interface Stage {
  readonly screen: Screen;
  readonly store: Store;
  readonly url: string;
  readonly page: string;
  readonly head: readonly string[];
  readonly once: boolean;
  readonly worldFile: string;
}

async function direct({ screen, store, url, page, head, once, worldFile }: Stage): Promise<number> {
  const clock = systemClock;
  const lively = isInteractive();
  const alone = once || !lively;
  const paint = lively && process.env.NO_COLOR === undefined ? terminalPaint : plainPaint;
  const told: string[] = [];
  let now = await store.read.now();
  const live = new Live(process.stdout, clock, (columns, rows) => {
    const { payments, workers } = treasury;
    return drawFrame({ head, payments, workers, log: told, keys, now, columns, rows }, paint);
  });
  const tell = (line: string): void => {
    told.push(line);
    if (lively) live.draw();
    else screen.line(`  ${line}`);
  };
  await using app = await Tape.open({ store, runner: createRunner({ workflows: [] }), work: false });
  const world = fileLedger(worldFile);
  const treasury = new Treasury({ app, url, world, worldFile, clock, ttlMs, answerMs: responseMs, tell });
  using stop = new Stop(() => treasury.kill());
  const buttons = new Buttons(store, app.tenant, (deed) => press(deed, treasury, tell));
  const release = lively ? onKeys((key) => onKey(key, { treasury, stop, tell, page })) : () => {};
  try {
    if (!lively) for (const line of [...head, ""]) screen.line(line);
    await buttons.show();
    await treasury.pay(alone ? "kill" : undefined);
    while (!stop.signal.aborted) {
      await buttons.look();
      await treasury.look();
      now = await store.read.now();
      if (lively) live.draw();
      if (alone && treasury.done) break;
      await clock.sleep(observeMs, stop.signal);
    }
    if (stop.signal.aborted) tell("stopping: the workers drain and give back what they hold");
  } finally {
    release(); // before the drain: Ctrl-C is a signal again, and the second one does not wait
    await treasury.quit();
  }
  await treasury.look();
  if (lively) live.leave();
  return verdict(screen, treasury.payments, lively ? undefined : now, paint);
}

/** Says of each payment what the world says; `now` for the band as text too. 0: none was paid twice, none ended unpaid. */
function verdict(screen: Screen, payments: readonly Payment[], now: number | undefined, paint: FramePaint): number {
  for (const payment of payments) {
    screen.line();
    if (now !== undefined) for (const line of paymentLines(payment, now, textWidth, paint)) screen.line(line);
    screen.line(`${payment.run}: ${payment.status}${payment.endedAt === undefined ? ", unfinished" : ""}`);
    screen.line(worldLine(payment, { ...paint, good: screen.good, bad: screen.bad }));
  }
  return payments.every(({ wires, endedAt }) => (endedAt === undefined ? wires <= 1 : wires === 1)) ? 0 : 1;
}

interface KeyContext {
  readonly treasury: Treasury;
  readonly stop: Stop;
  readonly tell: (line: string) => void;
  readonly page: string;
}

function onKey(key: string, { treasury, stop, tell, page }: KeyContext): void {
  const deed = faultKeys[key];
  if (key === "q") stop.ask();
  if (key === "o") openPage(page, tell);
  if (deed !== undefined && !stop.signal.aborted) press(deed, treasury, tell);
}

function press(deed: Fault, treasury: Treasury, tell: (line: string) => void): void {
  if (deed === "zombie" && process.platform === "win32") tell("Windows has no SIGSTOP: no zombie there");
  else treasury.press(deed).catch((error: unknown) => tell(`it could not be started: ${String(error)}`));
}
