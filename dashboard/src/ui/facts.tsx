import type { ReactNode } from "react";

export type Fact = readonly [name: string, value: ReactNode];

export function Facts({ of }: { readonly of: readonly Fact[] }) {
  return (
    <dl className="facts">
      {of.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
