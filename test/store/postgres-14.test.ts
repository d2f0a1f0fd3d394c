import { afterEach, beforeEach, describe, it } from "vitest";
import { storeConformance } from "../../src/testing/conformance/index.ts";
import { ownPostgres } from "../postgres/own.ts";
import { postgresFixtures } from "./postgres-fixture.ts";

const postgresUrl = ownPostgres(14);

const api = { describe, it, beforeEach, afterEach };

storeConformance("PostgreSQL 14", api, postgresFixtures(postgresUrl));
