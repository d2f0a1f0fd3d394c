/**
 * The lease protocol as a model: one lease row, one journal, workers that acquire, work, append, renew and release,
 * and the faults around them.
 *
 * The holder's local deadline is omitted on purpose: safety must not depend on a paused process checking the time.
 */
import type { Model, Step } from "./explore.ts";
import { spend } from "./explore.ts";
import type { Entry, Ration, Row, Scenario, State, StoredState, Worker } from "./lease-state.ts";
import { FREE, IDLE, INVARIANTS, keyOf, labelOf, showOf } from "./lease-state.ts";

/** The correct protocol, and for each rule the ways to get it wrong. */
export interface Rules {
  readonly fence: "token and nonce" | "token" | "owner name" | "none";
  /** "before": one transaction compares, the next one writes. */
  readonly fenceAt: "commit" | "before";
  readonly predecessor: "is the head" | "unchecked" | "numbered by the store";
  readonly nonce: "fresh" | "none";
  /** The result of a repeated acquire when the first one committed and its response was lost. */
  readonly repeat: "same term" | "bumps again" | "waits for itself";
  readonly renew: "exact" | "owner name" | "unmatched";
  readonly release: "bumps the token" | "keeps the token" | "deletes the row";
  readonly takeover: "after expiry" | "after release only";
  readonly doom: "stops writes" | "ignored by the fence";
}

const CORRECT: Rules = {
  fence: "token and nonce",
  fenceAt: "commit",
  predecessor: "is the head",
  nonce: "fresh",
  repeat: "same term",
  renew: "exact",
  release: "bumps the token",
  takeover: "after expiry",
  doom: "stops writes",
};

/** Phases in which a worker does nothing more for its term; its lease expires. */
const GONE: ReadonlySet<Worker["phase"]> = new Set(["idle", "locked out", "released"]);

export function leaseModel(scenario: Scenario, overrides: Partial<Rules> = {}): Model<State> {
  const rules: Rules = { ...CORRECT, ...overrides };
  const labels = scenario.workers.map(labelOf);
  const last = scenario.records;

  /** The smallest unused number: a new term may reuse the number of a term that is no longer referenced. */
  function freshTerm(s: State): number {
    const used = new Set([s.row.term, s.backup?.row.term, ...s.workers.map((w) => w.term)]);
    let term = 1;
    while (used.has(term)) term++;
    return term;
  }

  function startTerm(s: State, label: string): { row: Row; worker: Worker } {
    const term = freshTerm(s);
    const nonce = rules.nonce === "fresh" ? term : 0;
    const token = s.row.token + 1;
    const row: Row = { ...FREE, token, nonce, owner: label, expired: false, term, stolen: !s.row.expired };
    return { row, worker: { phase: "holding", token, nonce, term, head: s.journal.length } };
  }

  function freed(row: Row): Row {
    if (rules.release === "deletes the row") return FREE;
    if (rules.release === "keeps the token") return { ...FREE, token: row.token, nonce: row.nonce };
    return { ...FREE, token: row.token + 1 };
  }

  const exact = (row: Row, w: Worker): boolean => row.token === w.token && row.nonce === w.nonce;

  function fencePasses(row: Row, w: Worker, label: string): boolean {
    if (rules.fence === "none") return true;
    if (row.doomed && rules.doom === "stops writes") return false;
    if (rules.fence === "owner name") return row.owner === label;
    return rules.fence === "token" ? row.token === w.token : exact(row, w);
  }

  function renewPasses(row: Row, w: Worker, label: string): boolean {
    if (rules.renew === "unmatched") return true;
    if (rules.renew === "owner name") return row.owner === label;
    return exact(row, w) && !row.doomed;
  }

  function workerSteps(s: State, i: number, out: Step<State>[]): void {
    const w = s.workers[i]!;
    const { row, journal } = s;
    const by = scenario.workers[i]!;
    const label = labels[i]!;
    const unfinished = journal.length < last;

    const add = (does: string, worker: Worker, stored: Partial<StoredState> = {}, cost?: keyof Ration): void => {
      const left = spend(s.left, cost);
      if (left === null) return;
      const workers = s.workers.with(i, worker);
      out.push({ by, does, fault: cost !== undefined, to: { ...s, ...stored, workers, left } });
    };

    const acquire = (): void => {
      const free = row.expired && (rules.takeover === "after expiry" || row.owner === "");
      const repeats = rules.repeat === "bumps again" && row.owner === label;
      if (!unfinished || !(free || repeats)) return;
      const started = startTerm(s, label);
      add("acquires", started.worker, { row: started.row });
      add(
        "acquires, the response is lost",
        { ...started.worker, phase: "asking", token: 0 },
        { row: started.row },
        "lost",
      );
    };

    const repeatAcquire = (): void => {
      if (rules.repeat === "same term" && row.nonce === w.nonce && row.owner === label && !row.doomed) {
        const kept = { ...row, expired: false, revived: row.term !== w.term };
        add("repeats the acquire", { ...w, phase: "holding", token: row.token, head: journal.length }, { row: kept });
      } else if (rules.repeat === "waits for itself" && row.nonce === w.nonce) {
        add("is refused its own lease", { ...w, phase: "locked out" });
      } else if (rules.repeat === "bumps again" && row.owner === label) {
        acquire();
      } else {
        add("is refused the lease", IDLE);
      }
    };

    const append = (): void => {
      if (w.head >= last) return;
      const fenced = w.phase === "checked" || fencePasses(row, w, label);
      if (!fenced || (rules.predecessor === "is the head" && w.head !== journal.length)) {
        add(fenced ? "appends, refused by the predecessor" : "appends, refused by the fence", IDLE);
        return;
      }
      const entry: Entry = {
        seq: rules.predecessor === "numbered by the store" ? journal.length + 1 : w.head + 1,
        step: w.head + 1,
        token: w.token,
        rowToken: row.token,
        byHolder: row.term === w.term,
        doomed: row.doomed,
      };
      const after: Worker = w.phase === "checked" ? { ...w, phase: "holding" } : w;
      add("appends", { ...after, head: w.head + 1 }, { journal: [...journal, entry] });
      add("appends, the response is lost", after, { journal: [...journal, entry] }, "lost");
    };

    const renew = (): void => {
      if (renewPasses(row, w, label)) {
        add("renews", w, { row: { ...row, expired: false, revived: row.term !== w.term } });
      } else if (w.phase === "holding") {
        add("renews, refused", IDLE);
      }
    };

    const release = (): void => {
      const stale = !exact(row, w);
      // A finished worker releases at no cost. A release in mid-work, as in a drain, is rationed.
      if (w.head >= last) add(stale ? "releases, refused" : "releases", IDLE, stale ? {} : { row: freed(row) });
      else if (!stale) add("releases in mid-body", { ...w, phase: "released" }, { row: freed(row) }, "release");
    };

    if (w.phase !== "idle") add("crashes and restarts", IDLE, {}, "crash");
    if (w.phase === "idle" || w.phase === "locked out") acquire();
    if (w.phase === "asking") repeatAcquire();
    if (w.phase === "holding" && rules.fenceAt === "before") {
      if (fencePasses(row, w, label) && w.head < last) add("compares the fence", { ...w, phase: "checked" });
    } else if (w.phase === "holding" || w.phase === "checked" || w.phase === "released") append();
    if (w.phase === "holding" || w.phase === "released") renew();
    if (w.phase === "holding") release();
    if (w.phase === "released") add("ends its body", IDLE);
  }

  function otherSteps(s: State, out: Step<State>[]): void {
    const { row } = s;
    const add = (by: string, does: string, to: Partial<State>, cost?: keyof Ration): void => {
      const left = spend(s.left, cost);
      if (left === null) return;
      out.push({ by, does, fault: cost !== undefined, to: { ...s, ...to, left } });
    };
    // The lease of a dead holder always expires in the end; that of a late holder expires as often as rationed.
    const late = !row.doomed && s.workers.some((w) => w.term === row.term && !GONE.has(w.phase));
    const expired: Row = { ...row, expired: true };
    if (!row.expired && late) add("clock", "expires a late holder", { row: expired }, "expiry");
    if (!row.expired && !late) add("clock", "expires a dead holder", { row: expired });
    if (!row.expired && !row.doomed) add("operator", "dooms the holder", { row: { ...row, doomed: true } }, "preempt");
    if (row.doomed) add("operator", "bumps the token", { row: { ...FREE, token: row.token + 1 } });
    if (s.backup === null && s.left.rewind > 0) add("store", "is backed up", { backup: { row, journal: s.journal } });
    if (s.backup !== null) add("store", "is restored", { ...s.backup, backup: null }, "rewind");
  }

  return {
    initial: { row: FREE, journal: [], workers: scenario.workers.map(() => IDLE), backup: null, left: scenario.ration },
    steps(s) {
      const out: Step<State>[] = [];
      for (let i = 0; i < s.workers.length; i++) workerSteps(s, i, out);
      otherSteps(s, out);
      return out;
    },
    key: keyOf(scenario),
    show: showOf(scenario),
    invariants: INVARIANTS,
    goal: { name: "the journal can be finished", reached: (s) => s.journal.length >= last },
  };
}
