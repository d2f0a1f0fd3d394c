import { fingerprint } from "../src/base/canonical.ts";
import { isTapeError } from "../src/model/errors.ts";
import type { TapeContext } from "../src/sdk/context.ts";
import type { ScopeHandle } from "../src/sdk/scope.ts";
import type { Workflow } from "../src/sdk/workflow.ts";
import type { FeedRecord } from "../src/store/contract/store.ts";

/** Operations in a scope, a time-out or a saga. */
export interface ScopeOp<Op = unknown> {
  readonly op: "scope";
  readonly kind: "scope" | "timeout" | "saga";
  /** Unique in its program. */
  readonly name: string;
  readonly ops: readonly Op[];
  /** Of a time-out. */
  readonly timeoutMs: number | undefined;
  /** The scope is cancelled after this time, beside its operations. */
  readonly cancelMs: number | undefined;
}

/** A run that outlives the one that starts it. */
export interface DetachedOp<Op = unknown> {
  readonly op: "detached";
  readonly ops: readonly Op[];
}

/** What the code of one process saw of an operation inside a scope, or of the scope as a whole. */
export interface ScopeSight {
  readonly run: string;
  readonly process: string;
  readonly scope: string;
  readonly kind: ScopeOp["kind"];
  /** Its place in the scope; undefined: the scope itself. */
  readonly index: number | undefined;
  /** A hash of its result, or the code of its error. */
  readonly outcome: string;
  readonly threw: boolean;
  /** Of an operation that the end of a scope refused: the position of that scope, and why it ended. */
  readonly refusedBy: { readonly scope: number; readonly reason: string } | undefined;
  /** Of a refused effect. */
  readonly effect: { readonly pos: number; readonly sent: boolean } | undefined;
}

interface Started<Op> {
  readonly ops: readonly Op[];
  readonly attempts: number;
}

/** The first step of a scope, whose record shows the position of the scope: the one before. */
export const markOf = (scope: string): string => `in ${scope}`;

/** Executes scopes in one process. */
export class ScopeWork {
  readonly #process: string;
  readonly #sights: ScopeSight[];

  constructor(process: string, sights: ScopeSight[]) {
    this.#process = process;
    this.#sights = sights;
  }

  /** The error of a scope is part of the result: the program continues after it. */
  async run<Op>(tape: TapeContext, op: ScopeOp<Op>, runOp: (op: Op) => Promise<unknown>): Promise<unknown> {
    const body = async (handle?: ScopeHandle): Promise<unknown[]> => {
      const marked = tape.step(markOf(op.name), () => op.name);
      if (handle !== undefined && op.cancelMs !== undefined) {
        // Refused if the scope ends before.
        void tape.sleep(op.cancelMs).then(
          () => handle.cancel("enough"),
          () => {},
        );
      }
      const results: unknown[] = [await marked];
      for (const [k, inner] of op.ops.entries()) results.push(await this.#watch(tape, op, k, () => runOp(inner)));
      return results;
    };
    const whole = (): Promise<unknown> => {
      if (op.kind === "timeout") return tape.timeout(op.timeoutMs!, () => body());
      return op.kind === "saga" ? tape.saga(() => body()) : tape.scope(body);
    };
    try {
      return await this.#watch(tape, op, undefined, whole);
    } catch (error) {
      return codeOf(error);
    }
  }

  async detach<Op>(
    tape: TapeContext,
    workflow: Workflow<Started<Op>, unknown>,
    { ops }: DetachedOp<Op>,
  ): Promise<string> {
    const { id } = await tape.spawn(workflow, { ops, attempts: 1 }, { detached: true });
    return id;
  }

  async #watch(
    { runId: run }: TapeContext,
    { name: scope, kind }: ScopeOp,
    index: number | undefined,
    work: () => Promise<unknown>,
  ): Promise<unknown> {
    const seen = { run, process: this.#process, scope, kind, index };
    try {
      const value = await work();
      this.#sights.push({
        ...{ ...seen, outcome: fingerprint(value), threw: false },
        ...{ refusedBy: undefined, effect: undefined },
      });
      return value;
    } catch (error) {
      this.#sights.push({ ...seen, outcome: codeOf(error), threw: true, ...refusalOf(error) });
      throw error;
    }
  }
}

const codeOf = (error: unknown): string => (isTapeError(error) ? error.code : String(error));

function refusalOf(error: unknown): Pick<ScopeSight, "refusedBy" | "effect"> {
  if (!isTapeError(error)) return { refusedBy: undefined, effect: undefined };
  const { scope, reason, pos, sent } = (error.details ?? {}) as Readonly<Record<string, unknown>>;
  const why = error.code === "TAPE_TIMEOUT" ? "timeout" : String(reason);
  return {
    refusedBy: typeof scope === "number" ? { scope, reason: why } : undefined,
    effect: typeof sent === "boolean" ? { pos: Number(pos), sent } : undefined,
  };
}

/** Another scope of the run was opened before this one, and was open then. */
export function isNested(feed: readonly FeedRecord[], journal: number, pos: number): boolean {
  const own = feed.filter((r) => r.journal === journal && r.in === "journal");
  const opened = own.findIndex((r) => r.kind === "scope.opened" && r.data.pos === pos);
  const before = own.slice(0, opened);
  const count = (kind: string): number => before.filter((r) => r.kind === kind).length;
  return count("scope.opened") > count("scope.closed");
}
