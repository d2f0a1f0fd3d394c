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
import { isInteractive, LiveTerminal, onKeys } from "./terminal.ts";
import { type Fault, type Payment, Treasury } from "./treasury.ts";

/** Short, so that a takeover happens while the user watches; the default is 30 s. */
const ttlMs = 2_000;
/** Long enough to press a key, and far below the wire's timeout of 10 s. */
const responseMs = 4_000;
const refreshMs = 100;
/** Columns of the band without a terminal. */
const textWidth = 76;

const keys = "k kill worker mid-wire · z make a zombie · u lose response · o open page · q quit";
const faultKeys: Readonly<Record<string, Fault>> = { k: "kill", z: "zombie", u: "lose" };

export interface TreasuryDemoOptions {
  readonly screen: Screen;
  readonly address: { readonly host: string; readonly port: number };
  /** Makes one payment, kills its worker, and exits. */
  readonly once: boolean;
}

/** Runs the built-in payment demo in a temporary folder. */
export async function runTreasuryDemo({ screen, address, once }: TreasuryDemoOptions): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), "tape-dev-"));
  try {
    return await runIn(folder, { screen, address, once });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function runIn(folder: string, { screen, address, once }: TreasuryDemoOptions): Promise<number> {
  const url = `sqlite:${join(folder, "tape.db")}`;
  const store = await openStore(url, { log: silentLog });
  try {
    const { serving, taken } = await serveNear(store, address, {
      log: silentLog,
      version,
      dev: true,
      runner: buildRunner(),
    });
    await using _ = serving;
    const head = [
      `Tape dev ${version}`,
      `  page    ${serving.url}${taken === undefined ? "" : `  (port ${taken} is in use)`}`,
      `  store   ${url}  (deleted on exit)`,
      `  runner  payment demo: two workers with five reactors each, leases of ${ttlMs / 1_000} s`,
      `  try     npx durable-tape runs --store ${serving.url}`,
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
  const interactive = isInteractive();
  const unattended = once || !interactive;
  const paint = interactive && process.env.NO_COLOR === undefined ? terminalPaint : plainPaint;
  const log: string[] = [];
  let now = await store.read.now();
  const live = new LiveTerminal(process.stdout, clock, (columns, rows) => {
    const { payments, workers } = treasury;
    return drawFrame({ head, payments, workers, log, keys, now, columns, rows }, paint);
  });
  const print = (line: string): void => {
    log.push(line);
    if (interactive) live.draw();
    else screen.line(`  ${line}`);
  };
  await using app = await Tape.open({ store, runner: createRunner({ workflows: [] }), work: false });
  const world = fileLedger(worldFile);
  const treasury = new Treasury({ app, url, world, worldFile, clock, ttlMs, responseMs, print });
  using stop = new Stop(() => treasury.kill());
  const buttons = new Buttons(store, app.tenant, (fault) => inject(fault, treasury, print));
  const release = interactive ? onKeys((key) => onKey(key, { treasury, stop, print, page })) : () => {};
  try {
    if (!interactive) for (const line of [...head, ""]) screen.line(line);
    await buttons.show();
    await treasury.pay(unattended ? "kill" : undefined);
    while (!stop.signal.aborted) {
      await buttons.poll();
      await treasury.refresh();
      now = await store.read.now();
      if (interactive) live.draw();
      if (unattended && treasury.done) break;
      await clock.sleep(refreshMs, stop.signal);
    }
    if (stop.signal.aborted) print("stopping: the workers drain and release their leases");
  } finally {
    release(); // before the drain, so that Ctrl-C is a signal again and a second one forces the exit
    await treasury.quit();
  }
  await treasury.refresh();
  if (interactive) live.leave();
  return verdict(screen, treasury.payments, interactive ? undefined : now, paint);
}

/** Prints each payment and its wires, and with `now` also its band. Returns 0 if no payment was made twice or missed. */
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
  readonly print: (line: string) => void;
  readonly page: string;
}

function onKey(key: string, { treasury, stop, print, page }: KeyContext): void {
  const fault = faultKeys[key];
  if (key === "q") stop.request();
  if (key === "o") openPage(page, print);
  if (fault !== undefined && !stop.signal.aborted) inject(fault, treasury, print);
}

function inject(fault: Fault, treasury: Treasury, print: (line: string) => void): void {
  if (fault === "zombie" && process.platform === "win32") print("Windows has no SIGSTOP, so no zombie");
  else treasury.inject(fault).catch((error: unknown) => print(`could not start the payment: ${String(error)}`));
}
