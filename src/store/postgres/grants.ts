import { TapeError } from "../../model/errors.ts";

/**
 * What a role that only runs Tape needs once the owner has migrated: nothing of the schema is its own, and it can change
 * rows but no table. The last two are for the tables of a later version; they hold for what the role that says them makes.
 */
export function grantsFor(schema: string, role: string): string[] {
  if (!/^[A-Za-z_][A-Za-z0-9_$-]{0,62}$/.test(role)) {
    throw new TapeError("TAPE_BAD_INPUT", `${JSON.stringify(role)} is not the name of a role`, { field: "role" });
  }
  const to = `"${role}"`;
  const rights = "select, insert, update, delete";
  return [
    `grant usage on schema "${schema}" to ${to};`,
    `grant ${rights} on all tables in schema "${schema}" to ${to};`,
    `grant execute on all functions in schema "${schema}" to ${to};`,
    `revoke insert, update, delete on "${schema}".migrations from ${to};`,
    `alter default privileges in schema "${schema}" grant ${rights} on tables to ${to};`,
    `alter default privileges in schema "${schema}" grant execute on functions to ${to};`,
  ];
}
