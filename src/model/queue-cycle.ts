/**
 * Cycles of queues: runs that wait for slots which they keep from each other, so that only an operator ends the wait.
 * A run of a "started" queue keeps its slot while it waits for a child. If that child waits in a queue whose slots are
 * kept by runs that wait the same way, back to the first, none of them ever continues.
 */

/** One step of a cycle: `run` waits for a slot that `holder` keeps while it waits for the run of the next step. */
export interface CycleStep {
  readonly run: string;
  readonly queue: string;
  /** The key of the run in that queue. */
  readonly key: string;
  /** The run that has the slot. */
  readonly holder: string;
}

/** A run as the search for a cycle sees it. */
export interface WaitingRun {
  readonly id: string;
  readonly journal: number;
  readonly parent: number | null;
  /** It runs, is about to, or waits for something else too: a gate, a timer, an effect. */
  readonly moves: boolean;
  /** Its place in its queue, with the limits in effect; undefined: it has none. */
  readonly slot?: {
    readonly queue: string;
    readonly key: string;
    readonly state: string;
    readonly concurrency: number | null;
    readonly keyConcurrency: number | null;
  };
}

/**
 * The cycle that keeps the run `journal` waiting; undefined: there is none. `runs` has every open child of each run that
 * waits, and every holder of the slots that each queued run needs.
 *
 * A queued run needs one of many slots. So it is blocked only if all their holders are, and a run that waits only if
 * all its children are.
 */
export function cycleOf(runs: readonly WaitingRun[], journal: number): CycleStep[] | undefined {
  const blocked = new Map(runs.filter(({ moves }) => !moves).map((run) => [run.journal, run]));
  const wall = (run: WaitingRun): readonly WaitingRun[] | undefined =>
    wallsOf(run, runs).find((needed) => needed.length > 0 && needed.every((one) => blocked.has(one.journal)));
  let before: number;
  do {
    before = blocked.size;
    for (const run of blocked.values()) if (wall(run) === undefined) blocked.delete(run.journal);
  } while (blocked.size < before);

  const path: WaitingRun[] = [];
  let run = blocked.get(journal);
  while (run !== undefined && !path.includes(run)) {
    path.push(run);
    run = wall(run)![0];
  }
  return run === undefined ? undefined : stepsOf(path.slice(path.indexOf(run)));
}

/** Sets of runs; the run cannot continue before one of each set does. */
function wallsOf({ journal, slot }: WaitingRun, runs: readonly WaitingRun[]): readonly (readonly WaitingRun[])[] {
  if (slot?.state !== "QUEUED") return [runs.filter(({ parent }) => parent === journal)];
  const holders = runs.filter((one) => one.slot?.state === "HELD" && one.slot.queue === slot.queue);
  const ofKey = holders.filter((one) => one.slot!.key === slot.key);
  const { concurrency, keyConcurrency } = slot;
  return [
    ...(concurrency !== null && holders.length >= concurrency ? [holders] : []),
    ...(keyConcurrency !== null && ofKey.length >= keyConcurrency ? [ofKey] : []),
  ];
}

/** A loop has a queued run, because parents alone form none. It starts with the oldest one, wherever it was entered. */
function stepsOf(loop: readonly WaitingRun[]): CycleStep[] {
  const queued = loop.filter(({ slot }) => slot?.state === "QUEUED");
  const first = loop.indexOf(queued.reduce((oldest, run) => (run.journal < oldest.journal ? run : oldest)));
  const turned = [...loop.slice(first), ...loop.slice(0, first)];
  return turned.flatMap(({ id, slot }, k) =>
    slot?.state === "QUEUED"
      ? [{ run: id, queue: slot.queue, key: slot.key, holder: turned[(k + 1) % turned.length]!.id }]
      : [],
  );
}
