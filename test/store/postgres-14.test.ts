import { afterEach, beforeEach, describe, it } from "vitest";
import { storeConformance, type TestRunner } from "../../testkit/conformance/index.ts";
import { ownPostgres } from "../postgres/own.ts";
import { sampleDay, sampleOf } from "../sample.ts";
import { postgresFixtures } from "./postgres-fixture.ts";

const postgresUrl = ownPostgres(14);

/**
 * The statements are the same as on 18, where every case runs. Here one in eight does, and at least one of each group,
 * so that the oldest supported version costs little; every day others. TAPE_TEST_EVERY_BOUNDARY=1 runs them all.
 */
const stride = 8;
let cases: Parameters<TestRunner["it"]>[] = [];
const groups: TestRunner["describe"] = (name, body) => {
  describe(name, () => {
    const around = cases;
    cases = [];
    body();
    for (const sample of sampleOf(cases, stride)) it(...sample);
    cases = around;
  });
};
const api: TestRunner = { describe: groups, it: (...entry) => void cases.push(entry), beforeEach, afterEach };

storeConformance(`PostgreSQL 14, the sample of ${sampleDay}`, api, postgresFixtures(postgresUrl));
