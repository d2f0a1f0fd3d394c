import { TapeError } from "../../model/errors.ts";

/**
 * Privileges of a role that only runs Tape after the owner has migrated: it owns nothing of the schema, and can change
 * rows but no tables. The last two are for tables of a later version; they apply to objects created by the granting
 * role.
 */
export function grantsFor(schema: string, role: string): string[] {
  if (!/^[A-Za-z_][A-Za-z0-9_$-]{0,62}$/.test(role)) {
    throw new TapeError("TAPE_BAD_INPUT", `${JSON.stringify(role)} is not a valid role name`, { field: "role" });
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
