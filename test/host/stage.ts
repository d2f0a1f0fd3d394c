import { onTestFinished } from "vitest";
import { seededRandom } from "../../src/base/random.ts";
import type { Singleton, SingletonState } from "../../src/host/singleton/singleton.ts";
import { Tape, type TapeOptions } from "../../src/host/tape.ts";
import { createRunner } from "../../src/sdk/workflow.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { ManualClock, settled } from "../../testkit/clock.ts";
import { openBlank } from "../blank-database.ts";

export const tenant = "default";
/** Without workflows, because these programs only hold leases. */
export const noRunner = createRunner({ workflows: [] });

export interface Line {
  readonly level: string;
  readonly event: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface Stage {
  readonly clock: ManualClock;
  readonly store: Store;
  readonly lines: Line[];
  app(label: string, more?: Partial<TapeOptions>): Promise<Tape>;
  story(name: string): Promise<unknown[]>;
}

/** Apps on one SQLite store in memory, in virtual time. The store is shared, unless the test opens it exclusively. */
export async function setStage({ exclusive = false, wrap = (store: Store): Store => store } = {}): Promise<Stage> {
  const clock = new ManualClock();
  const opened = await openSqlite({ file: ":memory:", clock, open: openBlank });
  const store = wrap({ ...opened, exclusive });
  const apps: Tape[] = [];
  const lines: Line[] = [];
  let seed = 0;
  onTestFinished(async () => {
    const closing = Promise.all(apps.map((app) => app.close()));
    await clock.elapse(60_000);
    await closing;
    await opened.close();
  });
  return {
    clock,
    store,
    lines,
    async app(label, more = {}) {
      const app = await Tape.open({
        store,
        runner: noRunner,
        work: false,
        clock,
        random: seededRandom(++seed),
        log: (level, event, fields = {}) => void lines.push({ level, event, fields: { app: label, ...fields } }),
        ...more,
      });
      apps.push(app);
      return app;
    },
    story: async (name) =>
      (await store.read.terms(tenant, { name })).map(({ token, startReason, endReason }) => [
        token,
        startReason,
        endReason,
      ]),
  };
}

/** Every state that a singleton enters from now on. */
export function statesOf(singleton: Singleton): SingletonState[] {
  const states: SingletonState[] = [];
  singleton.onChange((state) => void states.push(state));
  return states;
}

export const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });

/** Waits until promise chains and commits have finished. No virtual time passes. */
export const calm = (): Promise<void> => settled(30);
