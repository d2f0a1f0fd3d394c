import { afterEach, beforeEach, describe, inject, it } from "vitest";
import { storeConformance } from "../../src/testing/conformance/index.ts";
import { postgresFixtures } from "./postgres-fixture.ts";

const api = { describe, it, beforeEach, afterEach };

storeConformance(
  "PostgreSQL 18",
  api,
  postgresFixtures(() => inject("postgres18")),
);
storeConformance(
  "PostgreSQL 14",
  api,
  postgresFixtures(() => inject("postgres14")),
);
