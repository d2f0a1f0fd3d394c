import type { ReactNode } from "react";
import { QueryView } from "./query-view.tsx";

export interface Column<T> {
  readonly name: string;
  readonly cell: (row: T) => ReactNode;
  readonly className?: string;
}

export interface TableProps<T> {
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string | number;
  readonly isHighlighted?: (row: T) => boolean;
}

/** On a narrow screen each row becomes a block, with the column's name in front of each cell. */
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
            <tr key={keyOf(row)} className={isHighlighted?.(row) === true ? "highlighted" : ""}>
              {columns.map(({ name, cell, className = "" }) => (
                <td key={name} className={className} data-name={name}>
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

/** The rows of a query as a table, or its empty state. */
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
