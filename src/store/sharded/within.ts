import { isTapeError, TapeError } from "../../model/errors.ts";
import type { StepTransaction, Store, TransactionOps } from "../contract/store.ts";
import { BodyThrew } from "../contract/transaction.ts";
import type { Router } from "./router.ts";
import type { Shard } from "./shard.ts";

/**
 * Writes inside a transaction of the caller. Its connection must lead to the shard of the tenant: any other is
 * TAPE_OTHER_DATABASE, as it is with one database.
 */
export function shardedWithin(router: Router): TransactionOps {
  /** The shard to which a pool leads, once a step has found it. */
  const places = new WeakMap<object, Shard>();
  return {
    createRun: (transaction, tenant, spec) =>
      router.write(tenant, (store) => withinOf(store).createRun(transaction, tenant, spec)),
    async signal(transaction, tenant, run, signal) {
      try {
        return await router.write(tenant, (store) => withinOf(store).signal(transaction, tenant, run, signal));
      } catch (error) {
        // A run that does not exist gets the same response on every connection.
        const known = !isTapeError(error, "TAPE_OTHER_DATABASE") || (await router.read(tenant, runOf(tenant, run)));
        if (known === undefined) throw new TapeError("TAPE_RUN_NOT_FOUND", `no run ${run}`, { run }, error);
        throw error;
      }
    },
    step: (source, body) => new ShardedStep(router, places, source, body),
  };
}

const runOf = (tenant: string, run: string) => (store: Store) => store.read.run(tenant, run);

function withinOf({ within }: Store): TransactionOps {
  if (within === undefined) throw new TapeError("TAPE_NO_TRANSACTION", "the store of this shard has no transactions");
  return within;
}

/** A step does not name its tenant before it commits: the pool shows to which shard it leads. */
class ShardedStep implements StepTransaction {
  readonly #router: Router;
  readonly #places: WeakMap<object, Shard>;
  readonly #source: unknown;
  readonly #body: (client: unknown) => unknown;
  #open: { readonly shard: Shard; readonly step: StepTransaction } | undefined;
  #aborted: Error | undefined;

  constructor(router: Router, places: WeakMap<object, Shard>, source: unknown, body: (client: unknown) => unknown) {
    this.#router = router;
    this.#places = places;
    this.#source = source;
    this.#body = body;
  }

  async execute(): Promise<void> {
    const key = typeof this.#source === "object" && this.#source !== null ? this.#source : undefined;
    const known = key && this.#places.get(key);
    const shards = known === undefined ? this.#router.shards : [known];
    let refusal: unknown = this.#router.unreachable(shards.map(({ name }) => name));
    for (const shard of shards) {
      if (this.#aborted !== undefined) throw new BodyThrew(this.#aborted);
      const { store } = shard;
      if (store === undefined) continue;
      const step = withinOf(store).step(this.#source, this.#body);
      this.#open = { shard, step };
      try {
        await step.execute();
        if (key !== undefined) this.#places.set(key, shard);
        return;
      } catch (error) {
        this.#open = undefined;
        if (!isOtherDatabase(error)) throw error;
        refusal = error;
      }
    }
    throw refusal;
  }

  async commit(...args: Parameters<StepTransaction["commit"]>): ReturnType<StepTransaction["commit"]> {
    const shard = await this.#router.shardOf(args[0].tenant);
    if (this.#open === undefined) {
      const step = await shard.call(async (store) => withinOf(store).step(this.#source, this.#body));
      this.#open = { shard, step };
    }
    if (this.#open.shard !== shard) {
      await this.rollback();
      const [fence] = args;
      const lease = await shard.call((store) => store.read.lease(fence.tenant, { journal: fence.journal }));
      // A stale or forged fence is refused as such on every connection.
      if (lease?.token !== fence.token) throw new TapeError("TAPE_FENCED", "the term of this fence is over");
      const message = `the connection leads to shard ${this.#open.shard.name}, the tenant is on ${shard.name}`;
      throw new BodyThrew(new TapeError("TAPE_OTHER_DATABASE", message, { shard: shard.name }));
    }
    return this.#open.step.commit(...args);
  }

  async rollback(): Promise<unknown> {
    return this.#open?.step.rollback();
  }

  abort(error: Error): void {
    this.#aborted = error;
    this.#open?.step.abort(error);
  }
}

const isOtherDatabase = (error: unknown): boolean =>
  isTapeError(error instanceof BodyThrew ? error.cause : error, "TAPE_OTHER_DATABASE");
