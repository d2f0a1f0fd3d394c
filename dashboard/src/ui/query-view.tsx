import type { ReactNode } from "react";
import { ErrorMessage } from "./error-message.tsx";

/** The state of a query: loading, its error, or its data. */
export function QueryView<T>({
  of,
  children,
}: {
  readonly of: { readonly data: T | undefined; readonly error: unknown };
  readonly children: (data: T) => ReactNode;
}) {
  if (of.data !== undefined) return <>{children(of.data)}</>;
  if (of.error !== null && of.error !== undefined) return <ErrorMessage error={of.error} />;
  return <div className="loading" role="status" aria-label="Loading" />;
}
