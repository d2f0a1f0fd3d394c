import {
  BaseStore,
  type GetOperation,
  type Item,
  type ListNamespacesOperation,
  type MatchCondition,
  type Operation,
  type OperationResults,
  type PutOperation,
  type SearchItem,
  type SearchOperation,
} from "@langchain/langgraph-checkpoint";
import { TapeError } from "../model/errors.ts";
import type { StoredValue } from "../store/contract/store.ts";
import { deleteKey, part, type ValuesOf, valuesUnder } from "../store/value-keys.ts";
import { updateValue } from "../store/values.ts";

/** An item as it is stored. The time of its last change is that of the value. */
interface StoredItem {
  readonly namespace: string[];
  readonly key: string;
  readonly value: Record<string, unknown>;
  /** Absent in the first version. */
  readonly createdAt?: number;
}

/** Options of {@link TapeStore}. */
export interface TapeStoreOptions {
  /** The first part of its keys; default `langgraph-store`. Stores with different ones do not see each other. */
  readonly prefix?: string;
}

/** Items that one search returns. */
const maxFound = 1_000;

/**
 * LangGraph's long-term memory as values of a store: items by namespace and key. It has no vector index, so a search with
 * `query` is refused.
 *
 * @example
 * const graph = createAgent({ model, tools, store: new TapeStore(app) });
 */
export class TapeStore extends BaseStore {
  readonly #of: ValuesOf;
  readonly #prefix: string;

  /** Where the values are, and options. */
  constructor(of: ValuesOf, options: TapeStoreOptions = {}) {
    super();
    this.#of = of;
    this.#prefix = part(options.prefix ?? "langgraph-store");
  }

  /** Executes reads and writes of the long-term memory. */
  override async batch<Op extends Operation[]>(operations: Op): Promise<OperationResults<Op>> {
    const results: unknown[] = [];
    // In order: an operation reads what an earlier one of the batch has written.
    for (const operation of operations) {
      if ("matchConditions" in operation || "maxDepth" in operation) results.push(await this.#namespaces(operation));
      else if ("namespacePrefix" in operation) results.push(await this.#search(operation));
      else if ("value" in operation) results.push(await this.#write(operation));
      else if ("namespace" in operation) results.push(await this.#read(operation));
      else results.push(await this.#namespaces(operation));
    }
    return results as OperationResults<Op>;
  }

  /** Labels are never empty, so an empty part separates them from the key. */
  #folder(namespace: readonly string[]): string {
    const wrong = namespace.find((label) => typeof label !== "string" || label === "");
    if (wrong !== undefined) throw bad("namespace", "a label of a namespace is a text that is not empty");
    return [this.#prefix, ...namespace.map(part), ""].join("/");
  }

  #key({ namespace, key }: GetOperation): string {
    return `${this.#folder(namespace)}/${part(key)}`;
  }

  async #read(operation: GetOperation): Promise<Item | null> {
    const found = await this.#of.store.read.value(this.#of.tenant, this.#key(operation));
    return found === undefined || found.deleted ? null : itemOf(found);
  }

  async #write(operation: PutOperation): Promise<void> {
    const { namespace, key, value } = operation;
    const { store, tenant } = this.#of;
    const name = this.#key(operation);
    if (value === null) return deleteKey(this.#of, name);
    const before = await store.read.value(tenant, name);
    const isNew = before === undefined || before.deleted;
    await updateValue(store, tenant, name, (current): StoredItem => {
      const createdAt = (current as StoredItem | undefined)?.createdAt ?? (isNew ? undefined : before.at);
      return { namespace, key, value, ...(createdAt === undefined ? {} : { createdAt }) };
    });
  }

  async #search({ namespacePrefix, filter, limit = 10, offset = 0, query }: SearchOperation): Promise<SearchItem[]> {
    if (query !== undefined) throw bad("query", "TapeStore has no vector index: search without query");
    if (limit > maxFound) throw bad("limit", `limit is at most ${maxFound}`);
    const wanted = Object.entries(filter ?? {});
    const found: SearchItem[] = [];
    let skipped = 0;
    for await (const one of valuesUnder(this.#of, this.#folder(namespacePrefix))) {
      if (found.length >= limit) break;
      const item = itemOf(one);
      if (!wanted.every(([field, condition]) => matches(item.value[field], condition))) continue;
      if (skipped++ >= offset) found.push(item);
    }
    return found;
  }

  async #namespaces(operation: ListNamespacesOperation): Promise<string[][]> {
    const { matchConditions = [], maxDepth, limit = 100, offset = 0 } = operation;
    if (limit > maxFound) throw bad("limit", `limit is at most ${maxFound}`);
    const found = new Map<string, string[]>();
    for await (const { value } of valuesUnder(this.#of, `${this.#prefix}/`)) {
      const { namespace } = value as StoredItem;
      if (!matchConditions.every((condition) => fits(condition, namespace))) continue;
      const cut = namespace.slice(0, maxDepth);
      found.set(JSON.stringify(cut), cut);
    }
    return [...found.values()].slice(offset, offset + limit);
  }
}

function itemOf({ value, at }: StoredValue): Item {
  const { namespace, key, value: own, createdAt = at } = value as StoredItem;
  return { namespace, key, value: own, createdAt: new Date(createdAt), updatedAt: new Date(at) };
}

function fits({ matchType, path }: MatchCondition, namespace: readonly string[]): boolean {
  if (path.length > namespace.length) return false;
  const start = matchType === "prefix" ? 0 : namespace.length - path.length;
  return path.every((label, k) => label === "*" || label === namespace[start + k]);
}

const comparisons: Readonly<Record<string, (found: unknown, wanted: unknown) => boolean>> = {
  $eq: (found, wanted) => found === wanted,
  $ne: (found, wanted) => found !== wanted,
  $gt: (found, wanted) => Number(found) > Number(wanted),
  $gte: (found, wanted) => Number(found) >= Number(wanted),
  $lt: (found, wanted) => Number(found) < Number(wanted),
  $lte: (found, wanted) => Number(found) <= Number(wanted),
  $in: (found, wanted) => Array.isArray(wanted) && wanted.includes(found),
  $nin: (found, wanted) => !Array.isArray(wanted) || !wanted.includes(found),
};

/** A condition is a value that must be equal, or an object of comparisons. */
function matches(found: unknown, condition: unknown): boolean {
  if (typeof condition !== "object" || condition === null) return found === condition;
  return Object.entries(condition).every(([name, wanted]) => {
    const compare = Object.hasOwn(comparisons, name) ? comparisons[name] : undefined;
    if (compare !== undefined) return compare(found, wanted);
    throw bad("filter", `there is no comparison ${name}; there are ${Object.keys(comparisons).join(", ")}`);
  });
}

const bad = (field: string, message: string): TapeError => new TapeError("TAPE_BAD_INPUT", message, { field });
