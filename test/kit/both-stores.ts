import { afterAll, beforeAll, inject, it, onTestFinished } from "vitest";
import type { Log } from "../../src/base/log.ts";
import { openStore } from "../../src/host/open-store.ts";
import type { Limits } from "../../src/model/limits.ts";
import type { Runner } from "../../src/sdk/workflow.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { VirtualTape } from "../../testkit/kit/virtual-tape.ts";
import { type VirtualPostgres, virtualPostgres } from "./virtual-postgres.ts";

export type Open = (
  runner: Runner,
  options?: { readonly log?: Log; readonly leaseTtl?: number; readonly through?: (store: Store) => Store },
) => Promise<VirtualTape>;

/** Runs a test in virtual time on SQLite and on PostgreSQL; one database serves all tests of a file. */
export function onBothStores(
  limits: Partial<Limits> = {},
): (title: string, test: (open: Open) => Promise<void>, timeoutMs?: number) => void {
  let postgres: VirtualPostgres | undefined;
  beforeAll(async () => {
    postgres = await virtualPostgres(inject("postgres18"), limits);
  });
  afterAll(() => postgres?.close());
  return (title, test, timeoutMs = 60_000) => {
    for (const place of ["SQLite", "PostgreSQL"] as const) {
      const open: Open = async (runner, { through = (store: Store) => store, ...more } = {}) => {
        const tape = await VirtualTape.open({
          runner,
          ...more,
          openStore: async (clock, random) =>
            through(
              place === "SQLite"
                ? await openStore("sqlite::memory:", { clock, random, limits })
                : await postgres!.open(clock),
            ),
        });
        onTestFinished(() => tape.close());
        return tape;
      };
      it(`${place}: ${title}`, { timeout: timeoutMs }, () => test(open));
    }
  };
}
