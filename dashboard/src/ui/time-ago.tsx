import { ago, formatTime } from "../format.ts";
import { useNow } from "./use-now.ts";

export function TimeAgo({ at }: { readonly at: number }) {
  const now = useNow();
  return (
    <time dateTime={new Date(at).toISOString()} title={formatTime(at)}>
      {ago(at, now)}
    </time>
  );
}
