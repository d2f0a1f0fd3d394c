import { defineConfig } from "vitest/config";
import { Order } from "./test/order.ts";

/** These change what is global to a process, or go on for so long that loading the sources does not count. */
const alone = [
  "browser/*",
  "chaos/{reactors,server}",
  "cli/{dev,dev-project,operating,reactors}",
  "client/engine",
  "host/telemetry",
  "package/*",
  "planted/planted",
  "simulation/seeds-*",
].map((files) => `test/${files}.test.ts`);

const common = { testTimeout: 30_000, hookTimeout: 60_000 };

export default defineConfig({
  test: {
    globalSetup: ["test/postgres/setup.ts"],
    allowOnly: false,
    passWithNoTests: false,
    // Three files at a time also on two cores: half of the suite waits for databases and for processes that are stopped.
    maxWorkers: 3,
    sequence: { sequencer: Order },
    // Node runs our TypeScript as it stands. Vite would transform each file first, and run the result more slowly.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    projects: [
      { test: { ...common, name: "alone", include: alone, setupFiles: ["test/quiet.ts", "test/compiled.ts"] } },
      // One loaded copy of the sources in each worker: they leave nothing behind that another file could see.
      {
        test: {
          ...common,
          name: "sharing",
          include: ["test/**/*.test.ts"],
          exclude: alone,
          isolate: false,
          setupFiles: ["test/quiet.ts"],
        },
      },
    ],
  },
});
