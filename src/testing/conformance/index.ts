import { append } from "./append.ts";
import { concurrency } from "./concurrency.ts";
import { faults } from "./faults.ts";
import { finding } from "./finding.ts";
import type { Cases, Fixture, TestApi } from "./frame.ts";
import { leases } from "./leases.ts";
import { ledger } from "./ledger.ts";
import { renewals } from "./renewals.ts";
import { takeover } from "./takeover.ts";
import { tokens } from "./tokens.ts";

export type { Fixture, TestApi } from "./frame.ts";

const groups: Readonly<Record<string, Cases>> = {
  append,
  leases,
  renewals,
  takeover,
  finding,
  ledger,
  tokens,
  concurrency,
  faults,
};

/**
 * The conformance suite: a store is correct when it passes. A new store needs about ten lines.
 *
 * @example
 * storeConformance("mine", { describe, it, beforeEach, afterEach }, async () => {
 *   const store = await openMine();
 *   return { store, another: async () => openMine(), elapse: (ms) => sleep(ms), close: () => store.close() };
 * });
 */
export function storeConformance(name: string, api: TestApi, open: () => Promise<Fixture>): void {
  api.describe(`store conformance: ${name}`, () => {
    let fixture: Fixture | undefined;
    api.beforeEach(async () => {
      fixture = await open();
    });
    api.afterEach(async () => {
      await fixture?.close();
      fixture = undefined;
    });
    for (const [group, cases] of Object.entries(groups)) {
      api.describe(group, () =>
        cases(api, () => {
          if (fixture === undefined) throw new Error("no fixture outside a case");
          return fixture;
        }),
      );
    }
  });
}
