import type { Chance } from "./chance.ts";

/** Limits of the kept values per field, and of fields; the newest ones are kept. */
const maxValues = 48;
const maxFields = 400;
const maxNodes = 4_000;
const maxText = 2_048;

type Plain = string | number | boolean;
type Fields = Readonly<Record<string, unknown>>;

/**
 * Values that one tenant has seen in responses: ids, cursors, tokens, nonces, whole rows. Both tenants send them back.
 * Values that contain `secret` are left out, because no request may contain it: a response that does is a leak.
 */
export class Pool {
  readonly #secret: string;
  readonly #values = new Map<string, Plain[]>();
  readonly #objects = new Map<string, Fields[]>();
  readonly #heads = new Map<number, number>();

  constructor(secret: string) {
    this.#secret = secret;
  }

  take(json: unknown): void {
    let nodes = maxNodes;
    const walk = (one: unknown, field: string): void => {
      if (nodes-- <= 0 || one === null || one === undefined) return;
      if (Array.isArray(one)) {
        for (const item of one) walk(item, field);
      } else if (typeof one === "object") {
        this.#object(one as Fields);
        for (const [name, inner] of Object.entries(one)) walk(inner, name);
      } else if (!this.#isSecret(one)) this.#keep(this.#values, field, one as Plain);
    };
    walk(json, "");
  }

  /** A value of that field, or of any other field. */
  value(field: string, chance: Chance): Plain | undefined {
    const names = [field, ...(aliases.get(field) ?? [])].filter((name) => this.#values.has(name));
    const name = names.length > 0 && chance.maybe(0.9) ? chance.oneOf(names) : anyOf(this.#values, chance);
    // A nonce is only sent as a nonce: sent as a name it would rightly appear in responses.
    if (name === undefined || (name === "nonce" && field !== "nonce")) return undefined;
    return chance.oneOf(this.#values.get(name)!);
  }

  /** The fields of these names from one seen object. */
  object(fields: readonly string[], chance: Chance): Fields | undefined {
    if (fields.length === 0) return undefined;
    const found = this.#objects.get(chance.oneOf(fields));
    if (found === undefined) return undefined;
    const one = chance.oneOf(found);
    return Object.fromEntries(fields.flatMap((name) => (Object.hasOwn(one, name) ? [[name, one[name]]] : [])));
  }

  head(journal: number): number | undefined {
    return this.#heads.get(journal);
  }

  sawHead(journal: number, head: number): void {
    this.#heads.set(journal, Math.max(head, this.#heads.get(journal) ?? 0));
  }

  #object(one: Fields): void {
    const { journal, head, seq } = one;
    for (const position of [head, seq]) {
      if (typeof journal === "number" && typeof position === "number") this.sawHead(journal, position);
    }
    if (this.#isSecret(JSON.stringify(one))) return;
    for (const name of Object.keys(one)) this.#keep(this.#objects, name, one);
  }

  #isSecret(one: unknown): boolean {
    return typeof one === "string" && (one.length > maxText || one.includes(this.#secret));
  }

  #keep<T>(kept: Map<string, T[]>, field: string, one: T): void {
    const values = kept.get(field) ?? [];
    if (values.includes(one)) return;
    values.push(one);
    if (values.length > maxValues) values.shift();
    kept.set(field, values);
    if (kept.size > maxFields) kept.delete(kept.keys().next().value!);
  }
}

function anyOf(values: ReadonlyMap<string, unknown>, chance: Chance): string | undefined {
  return values.size === 0 ? undefined : chance.oneOf([...values.keys()]);
}

/** Other names under which the values of a field were seen. */
const aliases: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    run: ["id", "journal"],
    ids: ["id"],
    of: ["journal"],
    before: ["cursor", "journal"],
    above: ["id", "key"],
    after: ["version", "head", "seq"],
    from: ["seq", "spec"],
    to: ["spec"],
    at: ["pos"],
    below: ["journal"],
    root: ["journal"],
    item: ["journal"],
    since: ["createdAt"],
    startedSince: ["createdAt"],
    endedSince: ["endedAt"],
    endedBefore: ["endedAt"],
    workflows: ["workflow"],
    staleOf: ["reactor"],
    nextReactor: ["reactor"],
    forkedFrom: ["id"],
    schedule: ["id"],
    prefix: ["id", "key"],
  }),
);
