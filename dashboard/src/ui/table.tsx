import type { ReactNode } from "react";
import { QueryView } from "./query-view.tsx";

export interface Column<T> {
  readonly name: string;
  readonly cell: (row: T) => ReactNode;
  readonly look?: string;
}

export interface TableProps<T> {
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string | number;
  /** A row that must not be overlooked. */
  readonly isHighlighted?: (row: T) => boolean;
}

/** Rows of anything. On a phone each row is a block of its own, with the names of the columns before what they hold. */
export function Table<T>({ columns, rows, keyOf, isHighlighted }: TableProps<T>) {
  return (
    <div className="scroll">
      <table className="table">
        <thead>
          <tr>
            {columns.map(({ name }) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)} className={isHighlighted?.(row) === true ? "loud" : ""}>
              {columns.map(({ name, cell, look = "" }) => (
                <td key={name} className={look} data-name={name}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The answer to a query as a table, or what it means that there is nothing. */
export function QueryTable<D, T>({
  of,
  rows,
  empty,
  ...table
}: Omit<TableProps<T>, "rows"> & {
  readonly of: { readonly data: D | undefined; readonly error: unknown };
  readonly rows: (data: D) => readonly T[];
  readonly empty: ReactNode;
}) {
  return (
    <QueryView of={of}>
      {(data) => {
        const found = rows(data);
        return found.length === 0 ? empty : <Table rows={found} {...table} />;
      }}
    </QueryView>
  );
}
