import { defineConfig } from "vitest/config";

/** For test/run.test.ts alone: small files in every state that the test command must judge. */
export default defineConfig({ test: { include: ["test/run-fixtures/*.fixture.ts"], allowOnly: false } });
