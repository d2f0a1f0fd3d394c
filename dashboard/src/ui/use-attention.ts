import { useQuery } from "@tanstack/react-query";
import { effectsInDoubt, overview, stuckRuns } from "../queries.ts";

/** Everything that needs an operator, gates excepted: they have a screen and a count of their own. */
export function useAttention() {
  const summary = useQuery(overview()).data;
  // Every screen shows the count, so the lists are read only while the summary, which the server caches, is not zero.
  const hasEffects = summary !== undefined && summary.inDoubt.count + summary.obligations.count > 0;
  const hasStuckRuns = summary?.runs.some(({ status, count }) => status === "STUCK" && count > 0) === true;
  const inDoubt = useQuery({ ...effectsInDoubt(), enabled: hasEffects });
  const stuck = useQuery({ ...stuckRuns(), enabled: hasStuckRuns });
  const effects = inDoubt.data?.effects ?? [];
  // A run that is stuck on an effect in doubt resumes with that effect: it is not listed twice.
  const runs = (stuck.data?.runs ?? []).filter(({ journal }) => effects.every(({ run }) => run !== journal));
  const {
    hung = [],
    unserved = [],
    unservedEffects = [],
    unservedQueues = [],
    queueCycles = [],
    sinks = [],
  } = summary ?? {};
  const isLoaded = (!hasEffects || inDoubt.data !== undefined) && (!hasStuckRuns || stuck.data !== undefined);
  return {
    ...{ effects, runs, hung, unserved, unservedEffects, unservedQueues, queueCycles, sinks },
    now: summary?.now ?? 0,
    count: [effects, runs, hung, unserved, unservedEffects, unservedQueues, queueCycles, sinks].reduce(
      (sum, list) => sum + list.length,
      0,
    ),
    isReady: summary !== undefined && isLoaded,
  };
}
