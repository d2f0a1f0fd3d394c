/**
 * The slots of a queue as a model: runs that wait for a slot, start, park, are woken and end; workers that admit them,
 * take them over and write under a fence; and the faults around them.
 *
 * The transitions of a slot and the rule for who may take a run are the ones of the store (`slotAfter`, `mayHandOut`), so
 * that the model verifies these, and not a copy of them.
 */
import { type Slot, type SlotEvent, slotAfter } from "../../src/model/slot.ts";
import { mayHandOut } from "../../src/store/lease-rules.ts";
import type { Model, Step } from "./explore.ts";
import { spend } from "./explore.ts";

/** The correct protocol, and for each rule the ways to get it wrong. */
export interface SlotRules {
  readonly counts: "running" | "started";
  /** "before the lock": one statement counts, a later one admits. */
  readonly limit: "read under the lock" | "read before the lock";
  readonly expiry: "frees nothing" | "frees the slot";
  readonly takeover: "in the run's slot" | "takes a second slot" | "needs a new slot";
  readonly release: "fenced" | "unfenced";
  readonly returned: "with the record" | "in a later transaction" | "not at the end";
  readonly parking: "by the rule" | "always returns the slot";
  readonly wake: "through the queue" | "past the queue";
  readonly cancel: "needs no slot" | "returns a slot";
}

const CORRECT: SlotRules = {
  counts: "running",
  limit: "read under the lock",
  expiry: "frees nothing",
  takeover: "in the run's slot",
  release: "fenced",
  returned: "with the record",
  parking: "by the rule",
  wake: "through the queue",
  cancel: "needs no slot",
};

export interface SlotScenario {
  readonly runs: number;
  readonly limit: number;
  readonly workers: number;
  readonly left: Ration;
}

interface Ration {
  readonly expiry: number;
  readonly crash: number;
  readonly drain: number;
  readonly cancel: number;
}

interface Run {
  /** null: it has left the queue. */
  readonly slot: Pick<Slot, "state" | "class"> | null;
  readonly ended: boolean;
  readonly started: boolean;
  readonly token: number;
  readonly held: boolean;
  readonly expired: boolean;
  /** Recovery finds it. */
  readonly due: boolean;
  /** The note that lets it end has arrived. */
  readonly noted: boolean;
}

interface Worker {
  /** counted: it has seen room. returning: its record is written, the slot not yet returned. */
  readonly phase: "idle" | "counted" | "driving" | "returning";
  readonly run: number;
  readonly token: number;
}

export interface QueueState {
  readonly runs: readonly Run[];
  /** The queue's counter of held slots. */
  readonly running: number;
  readonly workers: readonly Worker[];
  readonly left: Ration;
}

const IDLE: Worker = { phase: "idle", run: -1, token: 0 };
const WAITING: Run = {
  ...{ slot: { state: "QUEUED", class: 5 }, ended: false, started: false, token: 0 },
  ...{ held: false, expired: false, due: false, noted: false },
};

const holds = ({ slot }: Run): boolean => slot?.state === "HELD";

/** Runs with a worker whose writes the store accepts: also one that is late, as long as no other has taken over. */
const driven = (s: QueueState): Run[] =>
  s.runs.filter((run, r) =>
    s.workers.some((w) => w.phase === "driving" && w.run === r && run.held && w.token === run.token),
  );

function invariantsOf({ limit }: SlotScenario, { counts }: SlotRules) {
  return {
    "no more runs are driven than the queue has slots": (s: QueueState) => driven(s).length <= limit,
    "a driven run has a slot": (s: QueueState) => driven(s).every(holds),
    "the counter is the number of held slots": (s: QueueState) => s.running === s.runs.filter(holds).length,
    "an ended run has no slot": (s: QueueState) => s.runs.every((run) => !run.ended || run.slot === null),
    "a run that counts as started keeps its slot": (s: QueueState) =>
      counts !== "started" || s.runs.every((run) => !run.started || run.ended || holds(run)),
  };
}

export function slotModel(scenario: SlotScenario, overrides: Partial<SlotRules> = {}): Model<QueueState> {
  const rules: SlotRules = { ...CORRECT, ...overrides };

  /** The run's slot after an event, by the rule of the store. */
  function moved({ slot }: Run, event: SlotEvent): Run["slot"] {
    if (slot === null) return null;
    const keeps = rules.counts === "started" && rules.parking === "by the rule";
    return slotAfter({ ...slot, journal: 1, queue: 1, key: "", keeps, expires: false }, event) ?? null;
  }

  /** Replaces a run; the counter follows its slot. */
  function withRun(s: QueueState, r: number, next: Partial<Run>): Pick<QueueState, "runs" | "running"> {
    const [before, after] = [s.runs[r]!, { ...s.runs[r]!, ...next }];
    return { runs: s.runs.with(r, after), running: s.running + Number(holds(after)) - Number(holds(before)) };
  }

  const mayTake = (run: Run, admits: boolean): boolean => {
    if (rules.takeover === "needs a new slot" && !admits && run.slot !== null) return false;
    return (
      mayHandOut({ journal: 1, queue: "q", slot: run.slot?.state ?? null, build: null }, { ...REQUEST, admits }) ===
      undefined
    );
  };

  /** The first of the queue: runs that continue come before those that start. Equal ones are symmetric. */
  function head(s: QueueState): number {
    const queued = s.runs.flatMap(({ slot }, r) => (slot?.state === "QUEUED" ? [{ r, class: slot.class }] : []));
    return queued.toSorted((a, b) => a.class - b.class)[0]?.r ?? -1;
  }

  function workerSteps(s: QueueState, i: number, out: Step<QueueState>[]): void {
    const w = s.workers[i]!;
    const add = (does: string, worker: Worker, to: Partial<QueueState> = {}, cost?: keyof Ration): void => {
      const left = spend(s.left, cost);
      if (left === null) return;
      const workers = s.workers.with(i, worker);
      out.push({ by: `worker ${i + 1}`, does, fault: cost !== undefined, to: { ...s, ...to, workers, left } });
    };
    const term = ({ token }: Run) => ({ token: token + 1, held: true, expired: false, due: false, started: true });

    const admit = (): void => {
      const r = head(s);
      const run = s.runs[r];
      if (run === undefined || !mayTake(run, true)) {
        add("finds no run", IDLE);
        return;
      }
      const slot = { state: "HELD", class: run.slot!.class } as const;
      add("admits a run", { phase: "driving", run: r, token: run.token + 1 }, withRun(s, r, { ...term(run), slot }));
    };

    const recover = (r: number): void => {
      const run = s.runs[r]!;
      if (run.ended || !(run.held ? run.expired : run.due) || !mayTake(run, false)) return;
      const next = withRun(s, r, term(run));
      const running = next.running + Number(rules.takeover === "takes a second slot" && run.held);
      const does = run.held ? "takes over a run" : "continues a run";
      add(does, { phase: "driving", run: r, token: run.token + 1 }, { ...next, running });
    };

    /** Ends the term with a record that moves the slot, in the same transaction. */
    const write = (does: string, next: Partial<Run>, slot: Run["slot"], cost?: keyof Ration): void => {
      const run = s.runs[w.run]!;
      const released = { ...next, held: false, expired: false, token: run.token + 1 };
      if (rules.returned === "in a later transaction" && slot?.state !== run.slot?.state) {
        add(does, { ...w, phase: "returning" }, withRun(s, w.run, released), cost);
      } else add(does, IDLE, withRun(s, w.run, { ...released, slot }), cost);
    };

    if (w.phase !== "idle") add("crashes and restarts", IDLE, {}, "crash");
    if (w.phase === "idle") {
      const room = s.running < scenario.limit && head(s) >= 0;
      if (room && rules.limit === "read under the lock") admit();
      if (room && rules.limit === "read before the lock") add("sees room", { ...w, phase: "counted" });
      for (let r = 0; r < s.runs.length; r++) recover(r);
    }
    if (w.phase === "counted") admit();
    if (w.phase === "returning") {
      const run = s.runs[w.run]!;
      const event: SlotEvent = run.ended ? { of: "ended" } : { of: "released", wanted: false };
      add("returns the slot", IDLE, withRun(s, w.run, { slot: moved(run, event) }));
    }
    if (w.phase !== "driving") return;
    const run = s.runs[w.run]!;
    const parked = moved(run, { of: "released", wanted: false });
    if (!run.held || run.token !== w.token) {
      if (rules.release === "unfenced" && !run.ended)
        add("returns a slot, unfenced", IDLE, withRun(s, w.run, { slot: parked }));
      else add("is refused by the fence", IDLE);
      return;
    }
    const done = rules.returned === "not at the end" ? run.slot : moved(run, { of: "ended" });
    if (run.noted) write("ends the run", { ended: true, due: false }, done);
    else write("parks the run", {}, parked);
    write("hands the run over", { due: true }, moved(run, { of: "released", wanted: true }), "drain");
  }

  function otherSteps(s: QueueState, r: number, out: Step<QueueState>[]): void {
    const run = s.runs[r]!;
    const add = (by: string, does: string, next: Partial<Run>, cost?: keyof Ration, running = 0): void => {
      const left = spend(s.left, cost);
      if (left === null) return;
      const to = withRun(s, r, next);
      out.push({ by, does, fault: cost !== undefined, to: { ...s, ...to, running: to.running + running, left } });
    };
    if (run.ended) return;
    if (!run.noted) {
      const slot = rules.wake === "past the queue" && run.slot?.state === "PARKED" ? null : moved(run, { of: "noted" });
      const waits = slot !== null && slot.state !== "HELD";
      add("sender", "sends a note", { noted: true, slot, due: !run.held && !waits });
    }
    if (run.held && !run.expired) {
      const late = s.workers.some((w) => w.phase === "driving" && w.run === r && w.token === run.token);
      const freed = rules.expiry === "frees the slot" ? { slot: { state: "QUEUED", class: 0 } as const } : {};
      add(
        "clock",
        late ? "expires a late holder" : "expires a dead holder",
        { expired: true, ...freed },
        late ? "expiry" : undefined,
      );
    }
    if (!run.started && run.slot !== null) {
      const returned = rules.cancel === "returns a slot" ? -1 : 0;
      add(
        "operator",
        "cancels a queued run",
        { ended: true, slot: moved(run, { of: "cancelled" }) },
        "cancel",
        returned,
      );
    }
  }

  return {
    initial: {
      runs: Array.from({ length: scenario.runs }, () => WAITING),
      running: 0,
      workers: Array.from({ length: scenario.workers }, () => IDLE),
      left: scenario.left,
    },
    steps(s) {
      const out: Step<QueueState>[] = [];
      for (let i = 0; i < s.workers.length; i++) workerSteps(s, i, out);
      for (let r = 0; r < s.runs.length; r++) otherSteps(s, r, out);
      return out;
    },
    key: keyOf,
    show,
    invariants: invariantsOf(scenario, rules),
    goal: { name: "every run can end", reached: (s) => s.runs.every(({ ended }) => ended) },
  };
}

const REQUEST = {
  expect: "free_or_expired",
  claimant: { owner: "w", label: "w", reactor: "recovery", ttlMs: 1 },
} as const;

const runText = (run: Run): string => {
  const flags = [run.ended, run.started, run.held, run.expired, run.due, run.noted].map(Number).join("");
  return `${run.slot === null ? "out" : `${run.slot.state}${run.slot.class}`}/${run.token}/${flags}`;
};

/** Runs are symmetric, and so are workers: each run is named by its own state and the workers that drive it. */
function keyOf(s: QueueState): string {
  const runs = s.runs.map((run, r) => {
    const by = s.workers.filter((w) => w.run === r).map((w) => `${w.phase}${w.token}`);
    return `${runText(run)} ${by.sort().join()}`;
  });
  const free = s.workers.filter((w) => w.run < 0).map((w) => w.phase);
  return `${runs.sort().join("|")}|${free.sort().join()}|${s.running}|${Object.values(s.left).join()}`;
}

function show({ runs, running, workers }: QueueState): string {
  const busy = workers.flatMap((w, i) =>
    w.phase === "idle" ? [] : [`worker ${i + 1} ${w.phase}${w.run < 0 ? "" : ` run ${w.run + 1} t${w.token}`}`],
  );
  const lines = runs.map(
    (run, r) => `run ${r + 1} ${run.ended ? "ended" : (run.slot?.state ?? "no slot")} t${run.token}`,
  );
  return [`counter ${running}`, ...lines, ...busy].join(" | ");
}
