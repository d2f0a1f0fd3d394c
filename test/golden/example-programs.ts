import { type Case, cases } from "../examples/cases.ts";
import { atGate, type Program } from "./program.ts";

/** The examples, as test/examples runs them. */
const programOf = (case_: Case): Program => ({
  name: case_.name.replace(/, .*by the /, "-"),
  input: case_.input,
  ...(case_.budget && { start: { budget: case_.budget } }),
  build: (world) => case_.build(world),
  async client(around) {
    for (const { gate, value } of case_.signals ?? [])
      await atGate(around, gate.name, (binds, run) =>
        around.app.signal(run, gate, value as never, { binds, key: gate.name }),
      );
  },
});

export const examplePrograms: readonly Program[] = cases.map(programOf);
