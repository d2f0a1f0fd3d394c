import { suggest } from "../base/suggest.ts";
import { TapeError } from "../model/errors.ts";
import { type JournalRecord, type RecordKind, recordKinds } from "../model/records.ts";
import type { Subject } from "../store/contract/store.ts";
import { wantsOf } from "./wants.ts";

/** Which records become events. */
export interface EventFilter {
  /** `outline` (default), `effects`, `wants`, `all`, kinds such as `run.ended`, and groups such as `run.*`. */
  readonly kinds?: readonly string[];
  /** Only of these workflows. Records of named leases have none. */
  readonly workflows?: readonly string[];
  /** Only of runs with all of these labels. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** What a reader of the store's history wants to know: how runs begin, end and get stuck, and who decided what. */
const outline: ReadonlySet<RecordKind> = new Set([
  "run.created",
  "run.ended",
  "run.stuck",
  "run.unstuck",
  "run.compensating",
  "gate.opened",
  "gate.resolved",
  "operator.action",
]);

/** Settlements that need attention; a confirmed effect is not one. */
const notable: Readonly<Partial<Record<RecordKind, readonly string[]>>> = {
  "effect.settled": ["UNKNOWN", "STUCK", "FAILED"],
  "obligation.settled": ["STUCK"],
};

/** Bounds of a filter: it is compared with each record. */
const maxTerms = 256;

type Test = (record: JournalRecord) => boolean;

const inOutline: Test = ({ kind, data }) =>
  outline.has(kind) || (notable[kind]?.includes(String((data as { to?: unknown }).to)) ?? false);
const ofEffects: Test = ({ kind }) => kind.startsWith("effect.") || kind.startsWith("obligation.");

const forReactors: Test = (record) => wantsOf(record) !== undefined;

const sets: Readonly<Record<string, Test>> = {
  outline: inOutline,
  effects: ofEffects,
  wants: forReactors,
  all: () => true,
};

/** A checked filter in two parts: by the record alone, and by what it is about. */
export interface Matcher {
  readonly kind: Test;
  /** Whether `subject` is needed to decide. */
  readonly about: boolean;
  subject(subject: Subject | undefined): boolean;
}

export function matcherOf(filter: EventFilter = {}): Matcher {
  const { kinds = ["outline"], workflows, labels } = filter;
  const tests = checkedList("kinds", kinds).map(testOf);
  const served = workflows && new Set(checkedList("workflows", workflows));
  const wanted = Object.entries(labels ?? {});
  if (wanted.length > maxTerms) throw bad("labels", `has more than ${maxTerms} labels`);
  return {
    kind: (record) => tests.some((test) => test(record)),
    about: served !== undefined || wanted.length > 0,
    subject(subject) {
      const run = subject?.run;
      if (served !== undefined && (run === undefined || !served.has(run.workflow))) return false;
      return wanted.every(([key, value]) => run?.labels[key] === value);
    },
  };
}

function checkedList(field: string, list: readonly string[]): readonly string[] {
  if (!Array.isArray(list) || list.length === 0) throw bad(field, "must be a list with at least one name");
  if (list.length > maxTerms) throw bad(field, `has more than ${maxTerms} names`);
  const odd = list.find((name) => typeof name !== "string" || name === "");
  if (odd !== undefined) throw bad(field, "must be names");
  return list;
}

function testOf(name: string): Test {
  const set = Object.hasOwn(sets, name) ? sets[name] : undefined;
  if (set !== undefined) return set;
  if (name.endsWith(".*")) {
    const group = name.slice(0, -1);
    if (recordKinds.some((kind) => kind.startsWith(group))) return ({ kind }) => kind.startsWith(group);
  } else if ((recordKinds as readonly string[]).includes(name)) return ({ kind }) => kind === name;
  const groups = [...new Set(recordKinds.map((kind) => `${kind.split(".")[0]}.*`))];
  const near = suggest(name, [...Object.keys(sets), ...recordKinds, ...groups]);
  const hint = near === undefined ? "" : `; did you mean ${near}?`;
  throw bad("kinds", `${name.slice(0, 64)} is no kind of record, and no group such as run.*${hint}`);
}

const bad = (field: string, message: string): TapeError =>
  new TapeError("TAPE_BAD_INPUT", `the filter's ${field}: ${message}`, { field: `filter.${field}` });
