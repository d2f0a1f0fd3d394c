import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["**/*.test.ts"],
    allowOnly: false,
    passWithNoTests: false,
    maxWorkers: 2,
    // The emulator executes one transaction at a time, some thirty a second.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    setupFiles: ["../quiet.ts", "client.ts"],
    // Node runs the TypeScript sources directly, as in the suite.
    experimental: { viteModuleRunner: false, nodeLoader: false },
  },
});
