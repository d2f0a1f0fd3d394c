import { storeConformance } from "../../testkit/conformance/index.ts";
import { ownPostgres } from "../postgres/own.ts";
import { sampleDay } from "../sample.ts";
import { sampled } from "../sampled-cases.ts";
import { postgresFixtures } from "./postgres-fixture.ts";

const postgresUrl = ownPostgres(14);

/**
 * The statements are the same as on 18, where every case runs. Here one in eight does, and at least one of each group,
 * so that the oldest supported version costs little; every day others. TAPE_TEST_EVERY_BOUNDARY=1 runs them all.
 */
storeConformance(`PostgreSQL 14, the sample of ${sampleDay}`, sampled(8), postgresFixtures(postgresUrl));
