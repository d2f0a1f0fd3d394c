import { afterEach, beforeEach, describe, it } from "vitest";
import { storeConformance, type TestRunner } from "../../testkit/conformance/index.ts";
import { ownPostgres } from "../postgres/own.ts";
import { sampleDay, sampleOf } from "../sample.ts";
import { postgresFixtures } from "./postgres-fixture.ts";

const postgresUrl = ownPostgres(14);

/**
 * The statements are the same as on 18, where every case runs; here one in eight does, and one of each group at least, so
 * that the oldest version that is supported costs little: every day others. TAPE_TEST_EVERY_BOUNDARY=1 runs them all.
 */
const stride = 8;
let cases: Parameters<TestRunner["it"]>[] = [];
const groups: TestRunner["describe"] = (name, body) => {
  describe(name, () => {
    const around = cases;
    cases = [];
    body();
    for (const one of sampleOf(cases, stride)) it(...one);
    cases = around;
  });
};
const api: TestRunner = { describe: groups, it: (...one) => void cases.push(one), beforeEach, afterEach };

storeConformance(`PostgreSQL 14, the sample of ${sampleDay}`, api, postgresFixtures(postgresUrl));
