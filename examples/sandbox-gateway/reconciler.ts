import type { SingletonContext, SingletonWork } from "../../src/exports/index.ts";
import type { Backend } from "./backend.ts";
import { next, type Report, type Trigger, triggerOf } from "./phases.ts";
import type { Sandbox, Sandboxes } from "./sandboxes.ts";

export interface ReconcilerOptions {
  readonly sandboxes: Sandboxes;
  readonly backend: Backend;
  readonly sweepEveryMs: number;
  /** A record without a machine is left alone this long, because the machine may still be starting. */
  readonly graceMs: number;
}

type Term = Pick<SingletonContext, "name" | "tenant" | "token" | "fence" | "assert" | "abortSignal">;

/** Two loops under one lease: one watches changes, the other finds what the watch missed. */
export function reconciler(options: ReconcilerOptions): SingletonWork {
  return {
    async watch(term) {
      while (!term.abortSignal.aborted) {
        try {
          for await (const report of options.backend.watch(term.abortSignal)) await apply(options, term, report);
        } catch (error) {
          // Reopen a broken stream; the sweep finds what it missed. A lost lease ends the loop.
          if (term.abortSignal.aborted || isFenced(error)) throw error;
        }
        await term.sleep("1s");
      }
    },
    async sweep(term) {
      while (!term.abortSignal.aborted) {
        const { changed } = await sweepOnce(options, term);
        term.progress(`swept, ${changed} changed`);
        await term.sleep(options.sweepEveryMs);
      }
    },
  };
}

const isFenced = (error: unknown): boolean => error instanceof Error && "code" in error && error.code === "TAPE_FENCED";

/** Compares the backend with the table once. */
export async function sweepOnce(options: ReconcilerOptions, term: Term): Promise<{ changed: number }> {
  const { sandboxes, backend, graceMs } = options;
  let changed = 0;
  const running = new Set((await backend.list()).map(({ id }) => id));
  for (const sandbox of await sandboxes.list()) {
    if (term.abortSignal.aborted) break;
    if (sandbox.phase === "Deleted") continue;
    // The list may be outdated by now, and so may a missing entry: read this one again.
    const orphan = !running.has(sandbox.id);
    if (orphan && sandbox.ageMs < graceMs) continue;
    const report = await backend.get(sandbox.id);
    if (report !== undefined) changed += Number(await apply(options, term, report));
    else if (orphan) changed += Number(await move(options, term, sandbox, "gone"));
  }
  return { changed };
}

/** Applies one report to the sandbox's record. Returns whether it changed. */
export async function apply(options: ReconcilerOptions, term: Term, report: Report): Promise<boolean> {
  const sandbox = await options.sandboxes.get(report.id);
  return sandbox !== undefined && move(options, term, sandbox, triggerOf(report));
}

async function move(
  { sandboxes }: ReconcilerOptions,
  term: Term,
  sandbox: Sandbox,
  trigger: Trigger | undefined,
): Promise<boolean> {
  for (let current: Sandbox | undefined = sandbox; current !== undefined; ) {
    const phase = next(current.phase, trigger);
    if (phase === undefined) return false;
    term.assert(); // by this process's clocks; the guard asks the database
    if (await sandboxes.change(current, phase, term)) return true;
    current = await sandboxes.get(sandbox.id); // a request changed it first
    if (trigger === "gone") return false; // a request uses it: not an orphan in this sweep
  }
  return false;
}
