import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["**/*.test.ts"],
    globalSetup: ["../postgres/setup.ts"],
    allowOnly: false,
    passWithNoTests: false,
    maxWorkers: 2,
    testTimeout: 180_000,
    hookTimeout: 60_000,
    setupFiles: ["../quiet.ts"],
    // Node runs the TypeScript sources directly, as in the suite.
    experimental: { viteModuleRunner: false, nodeLoader: false },
  },
});
