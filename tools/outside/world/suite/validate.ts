import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTestSuite } from "@workflow/world-testing";
import { afterAll, beforeAll, describe } from "vitest";

/** The framework's suite. It starts a server for each test, which finds its store in the environment. */
export function validate(title: string, store: (folder: string) => Promise<string>, stop = async () => {}): void {
  const folder = mkdtempSync(join(tmpdir(), "tape-world-"));
  beforeAll(async () => {
    process.env.WORKFLOW_TAPE_STORE = await store(folder);
  });
  afterAll(async () => {
    await stop();
    rmSync(folder, { recursive: true });
  });
  describe(title, () => createTestSuite("durable-tape/world"));
}
