import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/postgres/setup.ts"],
    allowOnly: false,
    passWithNoTests: false,
    // Three files at a time also on two cores: half of the suite waits for databases and for processes that are stopped.
    maxWorkers: 3,
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
