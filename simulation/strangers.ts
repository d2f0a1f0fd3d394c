import { isTapeError } from "../src/model/errors.ts";
import { type Fence, makeFence } from "../src/model/fence.ts";
import type { NewRecord } from "../src/model/records.ts";
import type { StrangerDeed } from "./plan-visitors.ts";
import { type Stage, tenant } from "./stage.ts";
import { strangerTenant } from "./tenants.ts";

/** In everything that a stranger writes: nothing of ours may ever hold it. */
export const canary = "a stranger was here";

/** What a stranger tried, and what it came to. */
export interface StrangerStory {
  readonly what: StrangerDeed["what"];
  /** The fence that it had was that of a present holder. */
  readonly current: boolean;
  /** The code of the refusal, or "nothing" for an answer as of what is not there. Else what it got. */
  readonly got: string;
}

/** Tries everything with the identifiers of others, and keeps a list of what came of it. */
export class Strangers {
  readonly stories: StrangerStory[] = [];
  readonly #stage: Stage;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  everything(): Promise<unknown> {
    return Promise.all(this.#stage.plan.strangers.map((deed) => this.#try(deed)));
  }

  async #try({ atMs, what }: StrangerDeed): Promise<void> {
    const { time, shared } = this.#stage;
    await time.sleep(atMs);
    const stolen = await this.#steal();
    if (stolen === undefined || shared.away) return;
    const { fence, current } = stolen;
    const got = await this.#with(what, makeFence(strangerTenant, fence.journal, fence.token, fence.nonce)).catch(
      (error: unknown) => (isTapeError(error) ? error.code : String(error)),
    );
    this.stories.push({ what, current, got });
  }

  /** The last fence that somebody wrote under; of a present holder, if there is one. */
  async #steal(): Promise<{ readonly fence: Fence; readonly current: boolean } | undefined> {
    const { shared, lookout } = this.#stage;
    const { leases } = await lookout.look();
    const holds = ({ journal, token }: Fence): boolean =>
      leases.some((lease) => lease.journal === journal && lease.token === token && lease.owner !== null);
    const fences = [...shared.fences.values()];
    const fence = fences.findLast(holds) ?? fences.at(-1);
    return fence === undefined ? undefined : { fence, current: holds(fence) };
  }

  async #with(what: StrangerDeed["what"], fence: Fence): Promise<string> {
    const { shared, lookout } = this.#stage;
    const { intake, claim, fenced, read } = shared.store;
    const { journal, token, nonce } = fence;
    const { runs, timers, effects } = await lookout.look();
    const id = runs.find((run) => run.journal === journal)?.id ?? runs[0]?.id ?? "run-0";
    const records = await read.journal(tenant, { journal }, {});
    const after = records.at(-1)?.seq ?? 1;
    const step: NewRecord = { kind: "step.done", data: { pos: 0, name: canary, value: canary } };
    switch (what) {
      case "append":
        return yes(await fenced.append(fence, { after, records: [step] }));
      case "append many": {
        const [verdict] = await fenced.appendAll([[fence, { after, records: [step] }]]);
        return verdict?.ok === false ? verdict.error.code : yes(verdict);
      }
      case "park": {
        const taken = runs.find((run) => run.journal === journal)?.notes ?? 0;
        const end: NewRecord = { kind: "term.ended", data: { end: "released", taken, waits: [canary] } };
        return yes(await fenced.append(fence, { after, records: [end] }));
      }
      case "renew": {
        const [verdict] = await claim.renew([{ fence, progress: 1_000_000 }]);
        return verdict?.ok === false ? verdict.error.code : yes(verdict);
      }
      case "acquire": {
        const claimant = { owner: canary, label: canary, reactor: "agent", ttlMs: 20_000 };
        const act = { by: canary, why: canary };
        const request = { target: { journal }, claimant, nonce, expect: "any", ...act } as const;
        const answer = await claim.acquire(strangerTenant, request);
        return answer.ok ? yes(answer) : answer.error.code;
      }
      case "signal":
        return yes(await intake.signal(strangerTenant, id, { name: "left", value: { key: canary } }));
      case "cancel":
        return yes(await intake.cancel(strangerTenant, id, { reason: canary }));
      case "evidence": {
        const sent = effects.findLast(({ attemptToken }) => attemptToken !== null);
        const attempt = { run: sent?.run ?? journal, pos: sent?.pos ?? 0, token: sent?.attemptToken ?? token };
        return yes(
          await intake.leaveEvidence(strangerTenant, { ...attempt, nonce }, { happened: true, value: canary }),
        );
      }
      case "fire": {
        const timer = timers.find(({ status }) => status === "SET") ?? { run: journal, pos: 0, purpose: "sleep" };
        return (await intake.fireTimer(strangerTenant, timer)) ? "a timer fired" : "nothing";
      }
      case "read": {
        const seen = [
          await read.run(strangerTenant, id),
          ...(await read.runs(strangerTenant)),
          ...(await read.effects(strangerTenant)),
          ...(await read.leases(strangerTenant)),
          await read.lease(strangerTenant, { journal }),
          ...(await read.feed(undefined, 100, strangerTenant)).records,
          ...(await read.journal(strangerTenant, { journal }, {})),
        ];
        return seen.every((one) => one === undefined) ? "nothing" : yes(seen);
      }
    }
  }
}

const yes = (answer: unknown): string => `an answer: ${Object.keys((answer ?? {}) as object).join(", ")}`;
