import { defineConfig } from "vitest/config";
import { Order } from "./test/order.ts";

/** Each in its own process: they change global state, or take so long that loading the sources does not matter. */
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

/** Needs servers that npm does not have: `npm run test:brokers`. */
const brokers = "test/brokers/**";
/** Takes minutes: `npm run test:shards`. */
const shards = "test/shards/**";
/** Needs Google's emulator: `npm run test:spanner`. */
const spanner = "test/spanner/**";

const common = { testTimeout: 30_000, hookTimeout: 60_000 };

export default defineConfig({
  test: {
    globalSetup: ["test/postgres/setup.ts"],
    allowOnly: false,
    passWithNoTests: false,
    // Three files at a time even on two cores: half of the suite waits for databases and for paused processes.
    maxWorkers: 3,
    sequence: { sequencer: Order },
    // Node runs the TypeScript sources directly. Vite would transform each file first, and the result runs more slowly.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    projects: [
      { test: { ...common, name: "alone", include: alone, setupFiles: ["test/quiet.ts", "test/compiled.ts"] } },
      // Test files share one loaded copy of the sources per worker, because they leave no state behind.
      {
        test: {
          ...common,
          name: "sharing",
          include: ["test/**/*.test.ts"],
          exclude: [...alone, brokers, shards, spanner],
          isolate: false,
          setupFiles: ["test/quiet.ts"],
        },
      },
    ],
  },
});
