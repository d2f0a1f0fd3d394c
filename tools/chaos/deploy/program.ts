import { gate } from "../../../src/sdk/gate.ts";
import { type Workflow, workflow } from "../../../src/sdk/workflow.ts";

export const [before, after] = ["v1", "v2"] as const;
export type Build = typeof before | typeof after;

export const paid = gate("paid");

/**
 * A workflow whose code differs between the builds from its second operation on: a run that a process of the other
 * build drives diverges. It returns who executed each step.
 */
export const orderOf = (build: Build): Workflow<{ readonly ms: number }, Build[]> =>
  workflow(
    "order",
    async (tape, { ms }: { readonly ms: number }) => {
      const by: Build[] = [];
      const step = async (name: string): Promise<void> => {
        by.push(await tape.step(name, () => build));
      };
      await step("price");
      if (build === before) await step("tax");
      else await tape.sleep(ms);
      await tape.gate(paid);
      if (build === before) await tape.sleep(ms);
      else await step("duty");
      await step("ship");
      return by;
    },
    { pinned: true },
  );

/** How many steps a run of the build has. */
export const stepsOf = 3;
