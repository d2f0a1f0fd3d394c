import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["suite/*.test.ts"],
    globals: true,
    allowOnly: false,
    passWithNoTests: false,
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    env: { TAPE_LOG_LEVEL: "silent" },
    // Node runs the TypeScript sources directly, as in the project's own suite.
    experimental: { viteModuleRunner: false, nodeLoader: false },
  },
});
