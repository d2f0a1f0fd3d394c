import { seededRandom } from "../src/base/random.ts";
import { isTapeError } from "../src/model/errors.ts";
import type { Store, StoredValue, ValueCondition } from "../src/store/contract/store.ts";
import { updateValue, type ValueTransition, watchValue } from "../src/store/values.ts";
import type { Operation } from "../testkit/linearizable.ts";
import type { Clients } from "./clients.ts";
import type { PlannedValueWrite } from "./plan-others.ts";
import { type Stage, tenant } from "./stage.ts";

export type ValueInput =
  | { readonly op: "put"; readonly key: string; readonly value: unknown; readonly when: ValueCondition }
  | { readonly op: "delete"; readonly key: string; readonly version: number }
  | { readonly op: "read"; readonly key: string };

/** `conflict`: refused, nothing written. Else the version, and what a read found (undefined: there is none). */
export type ValueOutput = "conflict" | { readonly version: number; readonly value?: unknown };

export interface ValueOperation extends Operation<ValueInput, ValueOutput> {
  /** Wall time at which it was asked for, and at which the answer came. */
  readonly asked: number;
  readonly answered: number;
}

/** Clients from outside that write values at the same time, and a history of what each of them was told. */
export class ValueClients {
  readonly history: ValueOperation[] = [];
  /** What each watcher saw: one that was not heard of for long is not waited for, and another begins. */
  readonly watched: ValueTransition[][] = [];
  readonly #stage: Stage;
  readonly #clients: Clients;
  readonly #random;
  #writes = 0;
  /** Counts calls and answers as they come: two in one millisecond have an order too. */
  #order = 0;

  constructor(stage: Stage, clients: Clients) {
    this.#stage = stage;
    this.#clients = clients;
    this.#random = seededRandom(`values ${stage.plan.seed}`);
  }

  async everything(): Promise<void> {
    const { values } = this.#stage.plan;
    if (values.length === 0) return;
    void this.#watch();
    const clients = [...new Set(values.map(({ client }) => client))];
    await Promise.all(clients.map((client) => this.#client(values.filter((one) => one.client === client))));
  }

  async #watch(): Promise<void> {
    const { time } = this.#stage;
    await this.#clients.insist(async (tape) => {
      const start = await tape.store.read.value(tenant, "x");
      void (async () => {
        const options = { after: start?.version ?? 0 };
        const mine: ValueTransition[] = [];
        this.watched.push(mine);
        for await (const seen of watchValue(tape.store, time, tenant, "x", options)) mine.push(seen);
      })().catch(() => {}); // whoever watches dies with its process
    });
  }

  async #client(deeds: readonly PlannedValueWrite[]): Promise<void> {
    const { time } = this.#stage;
    for (const deed of [...deeds].sort((a, b) => a.atMs - b.atMs)) {
      await time.sleep(Math.max(0, deed.atMs - time.now));
      await this.#clients.ask((tape) => this.#do(deed, this.#recording(tape.store)));
    }
  }

  async #do({ key, what }: PlannedValueWrite, store: Pick<Store, "read" | "intake">): Promise<void> {
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

  /** The same store, every call of which goes into the history. */
  #recording(store: Store): Pick<Store, "read" | "intake"> {
    const recorded = async <T>(
      input: ValueInput,
      work: () => Promise<T>,
      told: (answer: T) => ValueOutput,
    ): Promise<T> => {
      const { time } = this.#stage;
      const never = Number.POSITIVE_INFINITY;
      const one = { call: ++this.#order, ret: never, input, asked: time.wall(), answered: never };
      const at = this.history.push(one) - 1;
      const answered = (output: ValueOutput): void => {
        this.history[at] = { ...one, ret: ++this.#order, answered: time.wall(), output };
      };
      try {
        const answer = await work();
        answered(told(answer));
        return answer;
      } catch (error) {
        if (isTapeError(error, "TAPE_VERSION_CONFLICT")) answered("conflict");
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
