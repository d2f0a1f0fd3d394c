import { seededRandom } from "../src/base/random.ts";
import { isTapeError } from "../src/model/errors.ts";
import type { Store, StoredValue, ValueCondition } from "../src/store/contract/store.ts";
import { updateValue, type ValueTransition, watchValue } from "../src/store/values.ts";
import type { Operation } from "../testkit/linearizable.ts";
import type { Clients } from "./clients.ts";
import type { PlannedValueWrite } from "./plan-actions.ts";
import { type Stage, tenant } from "./stage.ts";

export type ValueInput =
  | { readonly op: "put"; readonly key: string; readonly value: unknown; readonly when: ValueCondition }
  | { readonly op: "delete"; readonly key: string; readonly version: number }
  | { readonly op: "read"; readonly key: string };

/** `conflict`: refused, nothing written. Otherwise the version, and the value that a read found (undefined: none). */
export type ValueOutput = "conflict" | { readonly version: number; readonly value?: unknown };

export interface ValueOperation extends Operation<ValueInput, ValueOutput> {
  /** Wall time of the request and of the response. */
  readonly requestedAt: number;
  readonly answeredAt: number;
}

/** Clients that write values concurrently, and the history of their results. */
export class ValueClients {
  readonly history: ValueOperation[] = [];
  /** Transitions seen by each watcher. A watcher that stays silent for too long is replaced by another. */
  readonly watched: ValueTransition[][] = [];
  readonly #stage: Stage;
  readonly #clients: Clients;
  readonly #random;
  #writes = 0;
  /** Orders calls and responses: two in the same millisecond have an order too. */
  #order = 0;

  constructor(stage: Stage, clients: Clients) {
    this.#stage = stage;
    this.#clients = clients;
    this.#random = seededRandom(`values ${stage.plan.seed}`);
  }

  async run(): Promise<void> {
    const { values } = this.#stage.plan;
    if (values.length === 0) return;
    void this.#watch();
    const clients = [...new Set(values.map(({ client }) => client))];
    await Promise.all(clients.map((client) => this.#client(values.filter((one) => one.client === client))));
  }

  async #watch(): Promise<void> {
    const { time } = this.#stage;
    await this.#clients.retry(async (tape) => {
      const start = await tape.store.read.value(tenant, "x");
      void (async () => {
        const options = { after: start?.version ?? 0 };
        const own: ValueTransition[] = [];
        this.watched.push(own);
        for await (const seen of watchValue(tape.store, time, tenant, "x", options)) own.push(seen);
      })().catch(() => {}); // a watcher dies with its process
    });
  }

  async #client(actions: readonly PlannedValueWrite[]): Promise<void> {
    const { time } = this.#stage;
    for (const action of [...actions].sort((a, b) => a.atMs - b.atMs)) {
      await time.sleep(Math.max(0, action.atMs - time.now));
      await this.#clients.call((tape) => this.#perform(action, this.#recording(tape.store)));
    }
  }

  async #perform({ key, what }: PlannedValueWrite, store: Pick<Store, "read" | "intake">): Promise<void> {
    const value = `write ${++this.#writes}`;
    const { read, intake } = store;
    switch (what) {
      case "create":
        await intake.putValue(tenant, key, value, "must_create");
        return;
      case "put":
        await intake.putValue(tenant, key, value, "unconditional");
        return;
      case "swap":
      case "delete": {
        const found = await read.value(tenant, key);
        await this.#stage.time.sleep(this.#random.int(200));
        if (what === "swap") await intake.putValue(tenant, key, value, { version: found?.version ?? 0 });
        else if (found !== undefined && !found.deleted) await intake.deleteValue(tenant, key, found.version);
        return;
      }
      case "read":
        await read.value(tenant, key);
        return;
      case "update":
        await updateValue(store, tenant, key, () => value);
    }
  }

  /** The same store, with every call recorded in the history. */
  #recording(store: Store): Pick<Store, "read" | "intake"> {
    const recorded = async <T>(
      input: ValueInput,
      work: () => Promise<T>,
      outputOf: (result: T) => ValueOutput,
    ): Promise<T> => {
      const { time } = this.#stage;
      const never = Number.POSITIVE_INFINITY;
      const one = { call: ++this.#order, ret: never, input, requestedAt: time.wall(), answeredAt: never };
      const at = this.history.push(one) - 1;
      const answeredAt = (output: ValueOutput): void => {
        this.history[at] = { ...one, ret: ++this.#order, answeredAt: time.wall(), output };
      };
      try {
        const result = await work();
        answeredAt(outputOf(result));
        return result;
      } catch (error) {
        if (isTapeError(error, "TAPE_VERSION_CONFLICT")) answeredAt("conflict");
        throw error;
      }
    };
    const versionOf = ({ version }: StoredValue): ValueOutput => ({ version });
    return {
      read: {
        ...store.read,
        value: (of, key) =>
          recorded(
            { op: "read", key },
            () => store.read.value(of, key),
            (found) =>
              found === undefined
                ? { version: 0 }
                : { version: found.version, ...(found.deleted ? {} : { value: found.value }) },
          ),
      },
      intake: {
        ...store.intake,
        putValue: (of, key, value, when) =>
          recorded({ op: "put", key, value, when }, () => store.intake.putValue(of, key, value, when), versionOf),
        deleteValue: (of, key, version) =>
          recorded({ op: "delete", key, version }, () => store.intake.deleteValue(of, key, version), versionOf),
      },
    };
  }
}
