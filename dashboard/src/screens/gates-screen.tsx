import { useInfiniteQuery } from "@tanstack/react-query";
import { call } from "../api.ts";
import { Empty } from "../ui/empty.tsx";
import { GateCard } from "../ui/gate-card.tsx";
import { LoadMore } from "../ui/load-more.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { Screen } from "../ui/screen.tsx";
import { useNames } from "../ui/use-names.ts";

export function GatesScreen() {
  const gates = useInfiniteQuery({
    queryKey: ["gates", "open", "all"],
    queryFn: ({ pageParam }) => call("gates.list", { query: { open: true, after: pageParam, limit: 100 } }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next,
    select: ({ pages }) => ({ gates: pages.flatMap((page) => page.gates) }),
  });
  const nameOf = useNames((gates.data?.gates ?? []).map(({ run }) => run));
  return (
    <Screen
      title="Gates"
      about="Runs that wait for somebody's decision. An answer counts for exactly the act it shows."
    >
      <QueryView of={gates}>
        {({ gates: open }) =>
          open.length === 0 ? (
            <Empty title="Nobody waits at a gate">
              A workflow waits with <code>await tape.gate(…)</code>; it will be here until it is answered.
            </Empty>
          ) : (
            <>
              <div className="cards">
                {open.map((gate) => (
                  <GateCard key={`${gate.run} ${gate.pos}`} gate={gate} run={nameOf(gate.run)} />
                ))}
              </div>
              <LoadMore of={gates} />
            </>
          )
        }
      </QueryView>
    </Screen>
  );
}
