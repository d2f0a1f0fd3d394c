import { afterEach, beforeEach, describe, it } from "vitest";
import { storeConformance, type TestRunner } from "../../testkit/conformance/index.ts";
import { ownEmulator, spannerFixtures } from "./fixture.ts";

/** Every case of the conformance suite whose number leaves this rest: each part has an emulator of its own. */
export function part(rest: number, of: number): void {
  let number = 0;
  const api: TestRunner = {
    ...{ describe, beforeEach, afterEach },
    it(name, body, timeoutMs) {
      // The emulator is slow: the time that a case allows for a real database is not enough.
      if (number++ % of === rest) it(name, body, timeoutMs === undefined ? undefined : timeoutMs * 10);
    },
  };
  storeConformance("Spanner's emulator", api, spannerFixtures(ownEmulator()));
}
