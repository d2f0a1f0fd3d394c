import type { DatabaseSync } from "node:sqlite";
import type { Ledger } from "../../examples/ledger.ts";
import type { Runner, StartOptions, Tape, Workflow } from "../../src/exports/index.ts";
import type { RunView } from "../../src/store/contract/store.ts";

/** What a program's client sees, and what it has learned from the run's replies. */
export interface Surroundings {
  readonly app: Tape;
  /** The runs of the tenant, newest last. */
  readonly runs: readonly RunView[];
  readonly world: Ledger;
  /** Starts the program's workflow again, with this input. */
  start(input: unknown): Promise<unknown>;
  /** false: the snapshot has not been taken yet. */
  readonly later: boolean;
  /** Does it once in this process, and records what it returns. Not awaited: a reply takes time. */
  once(name: string, request: () => Promise<unknown>): void;
}

/** A workflow with its world and its client, whose journals are kept. */
export interface Program {
  readonly name: string;
  build(world: Ledger, database: DatabaseSync | undefined): { workflow: Workflow<never, unknown>; runner: Runner };
  readonly input?: unknown;
  readonly start?: Omit<StartOptions, "id">;
  /** Called every 100 ms. It must be able to continue what its predecessor left, as every client must. */
  client?(around: Surroundings): void | Promise<void>;
  /** Only on SQLite: the stage of PostgreSQL in virtual time has no transactions of callers. */
  readonly sqliteOnly?: true;
}

export const runId = "the-run";

/** Erases the types of input and output, as a registry does. */
export const any = <I, O>(workflow: Workflow<I, O>): Workflow<never, unknown> =>
  workflow as unknown as Workflow<never, unknown>;

/** The run with this id, if it is there and has not ended. */
export const liveRun = ({ runs }: Surroundings, id = runId): RunView | undefined =>
  runs.find((run) => run.id === id && run.endedAt === null);

/** Does it once a gate of this name is open. */
export async function atGate(
  around: Surroundings,
  name: string,
  answer: (binds: string | undefined, run: string) => Promise<unknown>,
): Promise<void> {
  const open = (await around.app.gates.list()).find((gate) => gate.name === name);
  if (open !== undefined) around.once(`gate ${name}`, () => answer(open.binds, open.run));
}
