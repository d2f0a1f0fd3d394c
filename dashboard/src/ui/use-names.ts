import { useQuery } from "@tanstack/react-query";
import { call } from "../api.ts";

const most = 200;

/** Rows name runs by the number of their journal; people by their ids, which never change. */
export function useNames(journals: readonly number[]): (journal: number) => string | undefined {
  const wanted = [...new Set(journals)].sort((a, b) => a - b).slice(0, most);
  const { data } = useQuery({
    queryKey: ["names", wanted],
    queryFn: () => call("journals.names", { query: { of: wanted.join(",") } }),
    enabled: wanted.length > 0,
    staleTime: Number.POSITIVE_INFINITY,
    meta: { settled: true },
    placeholderData: (before) => before,
  });
  return (journal) => data?.journals.find((one) => one.journal === journal)?.name;
}
