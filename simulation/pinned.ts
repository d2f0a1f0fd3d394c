import type { Clock } from "../src/base/clock.ts";
import { type Workflow, workflow } from "../src/sdk/workflow.ts";
import type { BuildName, PinnedWork } from "./plan-builds.ts";

/** The workflow of pinned runs in a process of that build. It returns the builds that executed its steps. */
export const pinnedIn = (build: BuildName, clock: Clock): Workflow<PinnedWork, BuildName[]> =>
  workflow(
    "pinned",
    async (tape, { agrees, restMs, workMs }: PinnedWork) => {
      const by: BuildName[] = [];
      const work = async (): Promise<BuildName> => {
        await clock.sleep(workMs);
        return build;
      };
      for (const [k, ms] of restMs.entries()) {
        by.push(await tape.step(agrees ? `work ${k}` : `work ${k} of ${build}`, work));
        await tape.sleep(ms);
      }
      return by;
    },
    { pinned: true },
  );
