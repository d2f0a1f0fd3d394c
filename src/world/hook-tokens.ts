import { isTapeError } from "../model/errors.ts";
import { hasEnded } from "./entities.ts";
import type { RunLogs, WorldDeps } from "./run-log.ts";

/** The hook that a token belongs to, or belonged to. */
interface Claim {
  readonly run: string;
  readonly hook: string;
}

/**
 * Which hook has which token. A hook claims its token before its `hook_created` is appended, by compare-and-set on one
 * value. A claim is never given up by hand: it is void once its hook is disposed or its run has ended, which the log of
 * that run says, and neither can be taken back. So at most one live hook has a token, also after a crash in between.
 */
export class HookTokens {
  readonly #deps: WorldDeps;
  readonly #logs: RunLogs;

  constructor(deps: WorldDeps, logs: RunLogs) {
    this.#deps = deps;
    this.#logs = logs;
  }

  /** Claims a token for a hook; returns the run that has it, if another hook does. */
  async claim(token: string, mine: Claim): Promise<string | undefined> {
    const { store, tenant, keys } = this.#deps;
    for (;;) {
      const found = await store.read.value(tenant, keys.token(token));
      if (found !== undefined) {
        const claim = found.value as Claim;
        if (claim.run === mine.run && claim.hook === mine.hook) return undefined;
        if (!(await this.#isVoid(claim))) return claim.run;
      }
      try {
        await store.intake.putValue(tenant, keys.token(token), mine, { version: found?.version ?? 0 });
        return undefined;
      } catch (error) {
        if (!isTapeError(error, "TAPE_VERSION_CONFLICT")) throw error; // else another hook was faster: read again
      }
    }
  }

  /** The claim of a token, which may be void. */
  async claimOf(token: string): Promise<Claim | undefined> {
    const { store, tenant, keys } = this.#deps;
    return (await store.read.value(tenant, keys.token(token)))?.value as Claim | undefined;
  }

  /** A hook that is not in the log yet is about to be created, or will be by the next delivery: its claim holds. */
  async #isVoid({ run, hook }: Claim): Promise<boolean> {
    const state = await this.#logs.state(run);
    return state.run === undefined || hasEnded(state.run) || state.hooks.get(hook)?.disposed === true;
  }
}
