import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { configJsonSchema } from "../../src/config/schema.ts";
import { schemaFiles } from "../../tools/schema.ts";

it("src/config/tape.schema.json is what the schema says: npm run schema writes it", () => {
  expect(JSON.parse(readFileSync(schemaFiles.config, "utf8"))).toEqual(configJsonSchema());
});
