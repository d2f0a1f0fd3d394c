import { afterEach, beforeEach, describe, it } from "vitest";
import { storeConformance } from "../../testkit/conformance/index.ts";
import { ownPostgres } from "../postgres/own.ts";
import { postgresFixtures } from "./postgres-fixture.ts";

const postgresUrl = ownPostgres(18);

const api = { describe, it, beforeEach, afterEach };

storeConformance("PostgreSQL 18", api, postgresFixtures(postgresUrl));
