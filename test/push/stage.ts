import { inject, it, onTestFinished } from "vitest";
import type { Log } from "../../src/base/log.ts";
import { openStore } from "../../src/host/open-store.ts";
import { Tape, type TapeOptions } from "../../src/host/tape.ts";
import type { Runner } from "../../src/sdk/workflow.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { remoteOn } from "../client/stage.ts";
import { dropDatabase, freshDatabase } from "../postgres/database.ts";

export interface LogLine {
  readonly level: string;
  readonly event: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface PushStage {
  readonly store: Store;
  readonly lines: LogLine[];
  readonly log: Log;
  /** An app that drives nothing on its own. */
  app(runner: Runner, more?: Partial<TapeOptions>): Promise<Tape>;
}

const places = ["SQLite", "PostgreSQL", "HTTP"] as const;

async function openAt(place: (typeof places)[number]): Promise<Store> {
  if (place !== "PostgreSQL") {
    const store = await openStore("memory:");
    onTestFinished(() => store.close());
    if (place === "SQLite") return store;
    const remote = await remoteOn(store, "default");
    onTestFinished(() => remote.close());
    return remote;
  }
  const url = await freshDatabase(inject("postgres18"));
  onTestFinished(() => dropDatabase(url));
  const store = await openStore(url);
  onTestFinished(() => store.close());
  return store;
}

export async function pushStage(place: (typeof places)[number] = "SQLite"): Promise<PushStage> {
  const store = await openAt(place);
  const lines: LogLine[] = [];
  const log: Log = (level, event, fields = {}) => void lines.push({ level, event, fields });
  return {
    store,
    lines,
    log,
    async app(runner, more = {}) {
      const app = await Tape.open({ store, runner, work: false, log, report: false, ...more });
      onTestFinished(() => app.close());
      return app;
    },
  };
}

/** Runs a test on SQLite, on PostgreSQL, and through a server. */
export function onEachStore(title: string, test: (stage: PushStage) => Promise<void>): void {
  for (const place of places) it(`${place}: ${title}`, async () => test(await pushStage(place)));
}

/** Journals whose lease is held now. */
export async function heldLeases(store: Store): Promise<number[]> {
  return (await store.read.leases("default")).flatMap(({ journal, owner }) => (owner === null ? [] : [journal]));
}
