import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { call, type ModelUsage, type Run } from "../api.ts";

/** Turns that one request reads. */
const pageTurns = 50;
/** As for other parts of a run: one that has ended changes only by its effects and children. */
const openMs = 2_000;
const endedMs = 30_000;

export const conversationPages = ({ id, endedAt }: Pick<Run, "id" | "endedAt">) =>
  infiniteQueryOptions({
    queryKey: ["run", id, "conversation"],
    queryFn: ({ pageParam }) =>
      call("runs.conversation", { params: { id }, query: { from: pageParam, limit: pageTurns } }),
    initialPageParam: 0,
    getNextPageParam: ({ next }) => next,
    refetchInterval: endedAt === null ? openMs : endedMs,
  });

/** A comma separates names, so that of a name is escaped. */
const listed = (ids: readonly string[]): string =>
  ids.map((id) => id.replaceAll("%", "%25").replaceAll(",", "%2C")).join(",");

const maxRuns = 100;
/** What the visible runs have spent on models, by run. */
export const modelUsage = (ids: readonly string[]) =>
  queryOptions({
    queryKey: ["model usage", ids],
    queryFn: async (): Promise<ReadonlyMap<string, ModelUsage>> => {
      const { runs } = await call("runs.modelUsage", { query: { of: listed(ids.slice(0, maxRuns)) } });
      return new Map(runs.map((run) => [run.id, run]));
    },
    enabled: ids.length > 0,
    placeholderData: keepPreviousData,
    refetchInterval: 10_000,
    meta: { live: false },
  });
