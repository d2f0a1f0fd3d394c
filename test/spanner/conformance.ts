import { afterEach, beforeEach, describe, it } from "vitest";
import { storeConformance, type TestRunner } from "../../testkit/conformance/index.ts";
import { ownEmulator, spannerFixtures } from "./fixture.ts";

/** Every case of the conformance suite whose number leaves this rest: each part has an emulator of its own. */
export function part(rest: number, of: number): void {
  let number = 0;
  let [counting, found] = [false, false];
  const inCase = (register: () => void): void => {
    if (!counting) register();
  };
  const api: TestRunner = {
    beforeEach: (body) => inCase(() => beforeEach(body)),
    afterEach: (body) => inCase(() => afterEach(body)),
    describe(name, body) {
      if (counting) return body();
      // Counts first: a group without a case of this part would be a failure.
      const first = number;
      [counting, found] = [true, false];
      body();
      counting = false;
      const end = number;
      if (!found) return;
      describe(name, () => {
        number = first;
        body();
      });
      number = end;
    },
    it(name, body, timeoutMs) {
      if (number++ % of !== rest) return;
      found = true;
      // The emulator is slow: the time that a case allows for a real database is not enough.
      inCase(() => it(name, body, timeoutMs === undefined ? undefined : timeoutMs * 10));
    },
  };
  storeConformance("Spanner's emulator", api, spannerFixtures(ownEmulator()));
}
