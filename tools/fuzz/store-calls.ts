import { errorTable, isTapeError } from "../../src/model/errors.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { statesOf, victimOn } from "../../testkit/conformance/foreign.ts";
import { type Case, table } from "../../testkit/conformance/foreign-calls.ts";
import { tenant, unique } from "../../testkit/conformance/frame.ts";
import type { Chance } from "./chance.ts";
import type { Path } from "./json.ts";

type Group = "intake" | "claim" | "fenced" | "read";
type Method = (...args: unknown[]) => Promise<unknown>;

/** A recorded call of the store's contract. */
interface StoreCall {
  readonly group: Group;
  readonly name: string;
  readonly args: readonly unknown[];
}

export interface StoreFuzzReport {
  readonly calls: number;
  readonly rejected: number;
  readonly findings: readonly string[];
}

/**
 * Calls the store's contract like a program with wrong types: the calls of the conformance suite's table, each with one
 * value of its arguments replaced. The store must carry it out, or reject it with a code and change nothing.
 */
export async function fuzzStoreCalls(store: Store, chance: Chance, calls: number): Promise<StoreFuzzReport> {
  const findings: string[] = [];
  let rejected = 0;
  let made: StoreCall[] = [];
  for (let k = 0; k < calls; k++) {
    if (k % 100 === 0) made = await validCalls(store);
    const call = chance.oneOf(made);
    const { args, how } = brokenArguments(call.args, chance);
    const name = `${call.group}.${call.name} with ${how}`;
    const before = await statesOf(store, tenant);
    const outcome = await outcomeOf(store, { ...call, args });
    if (outcome.kind === "done") continue;
    rejected++;
    if (outcome.kind === "fault") findings.push(`${name}: ${outcome.message}`);
    else if ((await statesOf(store, tenant)) !== before) findings.push(`${name}: rejected, but something has changed`);
  }
  return { calls, rejected, findings: [...new Set(findings)] };
}

/** Records the calls of the conformance table. */
async function validCalls(store: Store): Promise<StoreCall[]> {
  const named = await victimOn(store);
  const made: StoreCall[] = [];
  for (const group of ["intake", "claim", "fenced", "read"] as const) {
    for (const make of Object.values(table[group] as Record<string, Case<object>>)) {
      if (typeof make === "string") continue;
      const caller = isOwnCall(made.length) ? tenant : unique("other");
      await Promise.resolve(make(recording(store[group], group, made), caller, named, store)).catch(() => {});
    }
  }
  return made;
}

/** Every other call is by the tenant: those of strangers are rejected before most arguments are checked. */
const isOwnCall = (count: number): boolean => count % 2 === 0;

function recording(calls: object, group: Group, made: StoreCall[]): object {
  return new Proxy(calls, {
    get(target, name, receiver) {
      const member: unknown = Reflect.get(target, name, receiver);
      if (typeof member !== "function") return member;
      return (...args: unknown[]) => {
        made.push({ group, name: String(name), args });
        return Reflect.apply(member, target, args) as unknown;
      };
    },
  });
}

type Outcome = { readonly kind: "done" | "rejected" } | { readonly kind: "fault"; readonly message: string };

async function outcomeOf(store: Store, { group, name, args }: StoreCall): Promise<Outcome> {
  try {
    const result = await (store[group] as unknown as Record<string, Method>)[name]!(...args);
    const verdicts = Array.isArray(result) ? result : [result];
    const judged = verdicts.filter((verdict) => typeof (verdict as { ok?: unknown } | undefined)?.ok === "boolean");
    return { kind: judged.length > 0 && judged.every((verdict) => verdict.ok === false) ? "rejected" : "done" };
  } catch (error) {
    if (!isTapeError(error)) return { kind: "fault", message: String(error).slice(0, 300) };
    if (error.code === "TAPE_INVARIANT" || errorTable[error.code].fault === "store") {
      return { kind: "fault", message: error.message.slice(0, 300) };
    }
    return { kind: "rejected" };
  }
}

const circular: Record<string, unknown> = {};
circular.self = circular;
const deep = (levels: number): unknown => {
  let value: unknown = 1;
  for (let k = 0; k < levels; k++) value = [value];
  return value;
};

/** Values that JavaScript can pass as any argument. */
const strangeValues: readonly (readonly [name: string, value: unknown])[] = [
  ["nothing", undefined],
  ["null", null],
  ["NaN", Number.NaN],
  ["Infinity", Number.POSITIVE_INFINITY],
  ["-1", -1],
  ["a fraction", 0.5],
  ["2^53", 2 ** 53],
  ["-0", -0],
  ["a negative bigint", -1n],
  ["a bigint beyond 64 bits", 2n ** 70n],
  ["an empty text", ""],
  ["a text of 600 letters", "a".repeat(600)],
  ["NUL", "a\u0000b"],
  ["a lone surrogate", "a\ud800"],
  ["digits", "12"],
  ["true", true],
  ["an empty list", []],
  ["a list in a list", [[]]],
  ["20 001 items", Array.from({ length: 20_001 }, () => "a")],
  ["an empty object", {}],
  ["an object without a prototype", Object.assign(Object.create(null), { a: 1 })],
  ["a circular object", circular],
  ["3 000 levels", deep(3_000)],
  ["a function", () => 1],
  ["a symbol", Symbol("s")],
  ["an invalid date", new Date(Number.NaN)],
  ["a map", new Map([[1, 2]])],
  ["a promise", Promise.resolve(1)],
];

function brokenArguments(args: readonly unknown[], chance: Chance): { args: readonly unknown[]; how: string } {
  const path = chance.oneOf(pathsIn(args));
  const [name, value] = chance.oneOf(strangeValues);
  return { args: replaced(args, path, value) as readonly unknown[], how: `${path.join(".")} ${name}` };
}

function pathsIn(value: unknown, path: Path = []): Path[] {
  const inner: readonly (readonly [string | number, unknown])[] = Array.isArray(value)
    ? value.slice(0, 4).map((one, k) => [k, one] as const)
    : isPlain(value)
      ? Object.entries(value)
      : [];
  return inner.flatMap(([step, one]) => [[...path, step], ...pathsIn(one, [...path, step])]);
}

const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof AbortSignal);

function replaced(value: unknown, [step, ...rest]: Path, replacement: unknown): unknown {
  if (step === undefined) return replacement;
  if (Array.isArray(value)) return value.map((one, k) => (k === step ? replaced(one, rest, replacement) : one));
  // A spread keeps symbols, and a fence is recognised by one.
  return { ...(value as object), [step]: replaced((value as Record<string, unknown>)[step], rest, replacement) };
}
