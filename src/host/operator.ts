import { isRemote, type RemoteStore } from "../client/store.ts";
import { type PreemptTarget, preempt } from "../engine/preempt.ts";
import { redrive } from "../engine/redrive.ts";
import type { Ground } from "../reactor/reactor.ts";
import { type Resolving, resolve } from "../reactor/resolve.ts";

interface Person {
  readonly by: string;
  readonly reason: string;
}

/** What a person does to work that another owner may hold: under its lease, taken in the person's name. */
export interface Operator {
  resolve(resolving: Resolving): Promise<void>;
  redrive(run: string, person: Person): Promise<void>;
  /** Fences the holder and sets the lease free. `onlyStale`: only if its time has run out. */
  preempt(target: PreemptTarget, act: Person & { readonly onlyStale?: boolean }): Promise<void>;
}

/** Embedded it acts itself; connected the server does, so that an operator's token suffices and the server says who it was. */
export function operatorOn(ground: Ground): Operator {
  const here: Operator = {
    resolve: (resolving) => resolve(ground, resolving),
    redrive: (run, person) => redrive(ground, run, person),
    preempt: (target, act) => preempt(ground, target, act),
  };
  return isRemote(ground.store) ? through(ground.store, here) : here;
}

function through({ remote }: RemoteStore, here: Operator): Operator {
  return {
    async resolve(resolving) {
      const { run: id, pos, sub = 0, resolution, by, reason } = resolving;
      const body = { resolution, by, reason };
      await remote.call("effects.resolve", { params: { id, pos, sub }, body });
    },
    async redrive(id, { by, reason }) {
      await remote.call("runs.redrive", { params: { id }, body: { by, reason } });
    },
    async preempt(target, act) {
      // There is a call for named leases and live holders; the rest needs a token that may both act and drive.
      if (!("name" in target) || act.onlyStale === true) return here.preempt(target, act);
      const { name } = target;
      await remote.call("leases.takeover", { params: { name }, body: { by: act.by, reason: act.reason } });
    },
  };
}
