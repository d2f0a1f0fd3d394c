import { afterEach, beforeEach, describe, it } from "vitest";
import { storeConformance, type TestRunner } from "../../testkit/conformance/index.ts";
import { ownPostgres } from "../postgres/own.ts";
import { postgresFixtures } from "./postgres-fixture.ts";

const postgresUrl = ownPostgres(14);

/**
 * The statements are the same as on 18, where every case runs; here every eighth one does, so that the oldest version that
 * is supported costs little. TAPE_TEST_EVERY_BOUNDARY=1 runs them all.
 */
const stride = process.env.TAPE_TEST_EVERY_BOUNDARY === "1" ? 1 : 8;
let cases = 0;
const some: TestRunner["it"] = (name, run, timeoutMs) => {
  if (cases++ % stride === 0) it(name, run, timeoutMs);
};
const groups: TestRunner["describe"] = (name, body) => {
  describe(name, () => {
    cases = 0; // the first of each group runs
    body();
  });
};
const api = { describe: groups, it: some, beforeEach, afterEach };

storeConformance("PostgreSQL 14", api, postgresFixtures(postgresUrl));
