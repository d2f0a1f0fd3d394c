import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useRef } from "react";

/** Rows of equal height, of which only the visible ones are rendered. */
export function useWindow(count: number, rowHeight: number) {
  const box = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count,
    getScrollElement: () => box.current,
    estimateSize: () => rowHeight,
    overscan: 8,
  });
  const items = rows.getVirtualItems();
  return {
    box,
    rowHeight,
    items,
    height: rows.getTotalSize(),
    first: items[0]?.index ?? 0,
    last: items.at(-1)?.index ?? 0,
  };
}

export function VirtualTable({
  label,
  kind,
  wide = false,
  columns,
  window: { box, items, height, rowHeight },
  count,
  children,
}: {
  readonly label: string;
  /** Selects the row layout in the style sheet. */
  readonly kind: "run" | "journal";
  /** More columns than usual. */
  readonly wide?: boolean;
  readonly columns: readonly string[];
  readonly window: ReturnType<typeof useWindow>;
  /** undefined while the total is unknown. */
  readonly count: number | undefined;
  readonly children: (index: number) => ReactNode;
}) {
  const row = `${kind}-row${wide ? " wide" : ""}`;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section className={`${kind}-body`} ref={box} tabIndex={0} aria-label={label}>
      <table className="virtual" aria-rowcount={count === undefined ? -1 : count + 1}>
        <thead>
          <tr className={row}>
            {columns.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody style={{ height }}>
          {items.map(({ index, start }) => (
            <tr
              key={index}
              className={row}
              aria-rowindex={index + 2}
              style={{ transform: `translateY(${start}px)`, height: rowHeight }}
            >
              {children(index)}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
