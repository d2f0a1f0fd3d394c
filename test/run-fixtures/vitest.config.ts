import { defineConfig } from "vitest/config";

/** For test/run.test.ts only: small files in every state that the test command must recognise. */
export default defineConfig({ test: { include: ["test/run-fixtures/*.fixture.ts"], allowOnly: false } });
