import { TapeError } from "../../model/errors.ts";
import type { RowOf } from "../sql/statements.gen.ts";

/** The place of an entry among those of all tenants, newest first. */
interface AuditPosition {
  readonly at: number;
  readonly n: number;
  readonly tenant: string;
}

const newest: AuditPosition = { at: Number.MAX_SAFE_INTEGER, n: Number.MAX_SAFE_INTEGER, tenant: "" };

/** Numbers that rise over all tenants would be one row that every operator action changes. */
export const auditCursor = ({ at, n, tenant }: RowOf<"audit.all">): string => `${at}.${n}.${tenant}`;

export function auditPosition(cursor: string | undefined): AuditPosition {
  if (cursor === undefined) return newest;
  const found = /^(\d{1,15})\.(\d{1,15})\.(.*)$/s.exec(cursor);
  if (found === null)
    throw new TapeError("TAPE_BAD_INPUT", "the cursor does not belong to this store", { field: "cursor" });
  return { at: Number(found[1]), n: Number(found[2]), tenant: found[3]! };
}
