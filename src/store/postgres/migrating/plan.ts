import { sqlFiles } from "../../sql/files.ts";
import { type PlannedStep, plannedSteps } from "../../sql/migration-plan.ts";
import { appliedOf, type Migration, pendingMigrations } from "../../sql/migrations.ts";
import { loadStatements } from "../../sql/statements.ts";
import { Connections } from "../connections.ts";
import { readFault } from "../errors.ts";
import { migrations } from "../migrate.ts";
import { parsePostgresUrl } from "../url.ts";

/**
 * What opening this store with this version would do. Changes nothing. A store that does not exist yet blocks no
 * process.
 */
export async function planPostgres(url: string, known: readonly Migration[] = migrations): Promise<PlannedStep[]> {
  const settings = parsePostgresUrl(url);
  const connections = new Connections(settings);
  const statements = loadStatements(sqlFiles(new URL("sql/", import.meta.url)), (n) => `$${n}`, settings.schema);
  const client = connections.directClient({});
  try {
    await client.connect();
    const { rows } = await client.query(statements.get("tables")!.text, [settings.schema]);
    const sizes = new Map(rows.map(({ name, rows: count }) => [String(name), Number(count)]));
    const applied = sizes.has("migrations") ? (await connections.ask("migrations.list", {})).rows : [];
    return plannedSteps(pendingMigrations(known, appliedOf(applied)), sizes);
  } catch (error) {
    throw readFault(error);
  } finally {
    await client.end().catch(() => {});
    await connections.close();
  }
}
