import { useInfiniteQuery } from "@tanstack/react-query";
import { call } from "../api.ts";
import { GateCard } from "../ui/gate-card.tsx";
import { Answer, Empty, More, Screen } from "../ui/parts.tsx";
import { useNames } from "../ui/use-names.ts";

export function Gates() {
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
      <Answer of={gates}>
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
              <More of={gates} />
            </>
          )
        }
      </Answer>
    </Screen>
  );
}
