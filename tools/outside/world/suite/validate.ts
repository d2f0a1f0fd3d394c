import { createTestSuite } from "@workflow/world-testing";
import { beforeAll, describe } from "vitest";
import type { Place } from "./places.ts";

/** The framework's suite. It starts a server for each test, which finds its store in the environment. */
export function validate(place: Place): void {
  beforeAll(() => {
    process.env.WORKFLOW_TAPE_STORE = place.url();
  });
  describe(`durable-tape/world on ${place.title}`, () => createTestSuite("durable-tape/world"));
}
