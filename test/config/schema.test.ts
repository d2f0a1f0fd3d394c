import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { configJsonSchema } from "../../src/config/schema.ts";
import { schemaFiles } from "../../tools/schema.ts";

it("tape.schema.json is up to date (npm run schema)", () => {
  expect(JSON.parse(readFileSync(schemaFiles.config, "utf8"))).toEqual(configJsonSchema());
});
