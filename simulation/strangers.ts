import { isTapeError } from "../src/model/errors.ts";
import { type Fence, makeFence } from "../src/model/fence.ts";
import type { NewRecord } from "../src/model/records.ts";
import type { StrangerAction } from "./plan-visitors.ts";
import { type Stage, tenant } from "./stage.ts";
import { strangerTenant } from "./tenants.ts";

/** Part of everything a stranger writes: it must never appear in our tenant. */
export const canary = "a stranger was here";

/** A stranger's call and its result. */
export interface StrangerCall {
  readonly what: StrangerAction["what"];
  /** It used the fence of a current holder. */
  readonly current: boolean;
  /** The code of the refusal, or "nothing" for the result of something that does not exist; else what it got. */
  readonly got: string;
}

/** Calls the store with our tenant's identifiers and records the results. */
export class Strangers {
  readonly calls: StrangerCall[] = [];
  readonly #stage: Stage;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  run(): Promise<unknown> {
    return Promise.all(this.#stage.plan.strangers.map((action) => this.#perform(action)));
  }

  async #perform({ atMs, what }: StrangerAction): Promise<void> {
    const { time, shared } = this.#stage;
    await time.sleep(atMs);
    const stolen = await this.#stealFence();
    if (stolen === undefined || shared.away) return;
    const { fence, current } = stolen;
    const got = await this.#call(what, makeFence(strangerTenant, fence.journal, fence.token, fence.nonce)).catch(
      (error: unknown) => (isTapeError(error) ? error.code : String(error)),
    );
    this.calls.push({ what, current, got });
  }

  /** The last fence used; that of a current holder, if there is one. */
  async #stealFence(): Promise<{ readonly fence: Fence; readonly current: boolean } | undefined> {
    const { shared, orphanWatch } = this.#stage;
    const { leases } = await orphanWatch.read();
    const holds = ({ journal, token }: Fence): boolean =>
      leases.some((lease) => lease.journal === journal && lease.token === token && lease.owner !== null);
    const fences = [...shared.fences.values()];
    const fence = fences.findLast(holds) ?? fences.at(-1);
    return fence === undefined ? undefined : { fence, current: holds(fence) };
  }

  async #call(what: StrangerAction["what"], fence: Fence): Promise<string> {
    const { shared, orphanWatch } = this.#stage;
    const { intake, claim, fenced, read } = shared.store;
    const { journal, token, nonce } = fence;
    const { runs, timers, effects } = await orphanWatch.read();
    const id = runs.find((run) => run.journal === journal)?.id ?? runs[0]?.id ?? "run-0";
    const records = await read.journal(tenant, { journal }, {});
    const after = records.at(-1)?.seq ?? 1;
    const step: NewRecord = { kind: "step.done", data: { pos: 0, name: canary, value: canary } };
    switch (what) {
      case "append":
        return describe(await fenced.append(fence, { after, records: [step] }));
      case "append many": {
        const [verdict] = await fenced.appendAll([[fence, { after, records: [step] }]]);
        return verdict?.ok === false ? verdict.error.code : describe(verdict);
      }
      case "park": {
        const notesTaken = runs.find((run) => run.journal === journal)?.notes ?? 0;
        const end: NewRecord = { kind: "term.ended", data: { reason: "released", notesTaken, waitingFor: [canary] } };
        return describe(await fenced.append(fence, { after, records: [end] }));
      }
      case "renew": {
        const [verdict] = await claim.renew([{ fence, progress: 1_000_000 }]);
        return verdict?.ok === false ? verdict.error.code : describe(verdict);
      }
      case "acquire": {
        const claimant = { owner: canary, label: canary, reactor: "agent", ttlMs: 20_000 };
        const audit = { by: canary, auditReason: canary };
        const request = { target: { journal }, claimant, nonce, expect: "any", ...audit } as const;
        const result = await claim.acquire(strangerTenant, request);
        return result.ok ? describe(result) : result.error.code;
      }
      case "signal":
        return describe(await intake.signal(strangerTenant, id, { name: "left", value: { key: canary } }));
      case "cancel":
        return describe(await intake.cancel(strangerTenant, id, { reason: canary }));
      case "evidence": {
        const sent = effects.findLast(({ attemptToken }) => attemptToken !== null);
        const attempt = { run: sent?.run ?? journal, pos: sent?.pos ?? 0, token: sent?.attemptToken ?? token };
        return describe(
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
        return seen.every((one) => one === undefined) ? "nothing" : describe(seen);
      }
    }
  }
}

const describe = (result: unknown): string => `a result: ${Object.keys((result ?? {}) as object).join(", ")}`;
