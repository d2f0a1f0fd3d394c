// What the examples of `durable-tape/testing` use and do not show. Types only; nothing runs.
import type { Effect, Runner, Store, Workflow } from "../../../src/exports/index.ts";
import type { CrashRound, TestRunner, WorldLedger } from "../../../testkit/index.ts";
import type { Operation, SequentialModel } from "../../../testkit/linearizable.ts";

export { strict as assert } from "node:assert";
export interface Order {
  readonly id: string;
}
export interface Receipt {
  readonly id: string;
}
export declare const store: Store;
export declare const runner: Runner;
export declare const workflow: Workflow<{ readonly invoice: string }, string>;
export declare const input: { readonly invoice: string };
export declare const treasury: Workflow<{ readonly invoice: string }, string>;
export declare const order: Workflow<Order, Receipt>;
export declare const reminder: Workflow<{ readonly in: string }, string>;
export declare const wire: Effect<{ readonly invoice: string }, Receipt>;
export declare const bank: WorldLedger;
export declare const round: CrashRound;
export declare const describe: TestRunner["describe"];
export declare const it: TestRunner["it"];
export declare const beforeEach: TestRunner["beforeEach"];
export declare const afterEach: TestRunner["afterEach"];
export declare function openMine(): Promise<Store>;
export declare function sleep(ms: number): Promise<void>;
export declare function work(store: Store): Promise<void>;
export declare const leaseModel: SequentialModel<string, string, string>;
export declare const history: readonly Operation<string, string>[];
