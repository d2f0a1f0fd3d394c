import { useQuery } from "@tanstack/react-query";
import { journalNames } from "../queries.ts";

const maxNames = 200;

/** Rows refer to a run by the number of its journal; this looks up the run ids. */
export function useNames(journals: readonly number[]): (journal: number) => string | undefined {
  const wanted = [...new Set(journals)].sort((a, b) => a - b).slice(0, maxNames);
  const { data } = useQuery(journalNames(wanted));
  return (journal) => data?.journals.find((entry) => entry.journal === journal)?.name;
}
