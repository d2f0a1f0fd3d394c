// `node test/spanner/schema.ts` writes src/store/spanner/schema.sql: what a freshly migrated store looks like.
import "./client.ts";
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const schemaFile = fileURLToPath(new URL("../../src/store/spanner/schema.sql", import.meta.url));

const header =
  "-- What a freshly migrated Spanner store looks like. Written by `node test/spanner/schema.ts`, read by people and by a test only.\n";

export const schemaText = (statements: readonly string[]): string =>
  `${header}\n${statements.map((text) => `${text.trim()};\n`).join("\n")}`;

if (import.meta.main) {
  const { startAdmin } = await import("./database.ts");
  const { openSpanner } = await import("../../src/store/spanner/open.ts");
  const admin = await startAdmin();
  const url = await admin.create();
  await (await openSpanner({ url })).close();
  writeFileSync(schemaFile, schemaText(await admin.schema(url)));
  await admin.close();
}
