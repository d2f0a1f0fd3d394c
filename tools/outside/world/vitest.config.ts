import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["suite/*.test.ts"],
    globals: true,
    setupFiles: ["../../../test/quiet.ts"],
    allowOnly: false,
    passWithNoTests: false,
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Node runs the TypeScript sources directly, as in the project's own suite.
    experimental: { viteModuleRunner: false, nodeLoader: false },
  },
});
