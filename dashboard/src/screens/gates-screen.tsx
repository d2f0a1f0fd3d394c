import { useInfiniteQuery } from "@tanstack/react-query";
import { openGatePages } from "../queries.ts";
import { Empty } from "../ui/empty.tsx";
import { GateCard } from "../ui/gate-card.tsx";
import { LoadMore } from "../ui/load-more.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { Screen } from "../ui/screen.tsx";
import { useNames } from "../ui/use-names.ts";

export function GatesScreen() {
  const gates = useInfiniteQuery(openGatePages());
  const nameOf = useNames((gates.data?.gates ?? []).map(({ run }) => run));
  return (
    <Screen
      title="Gates"
      about="Runs that wait for a signal or an approval. A decision applies only to the effect that the gate is bound to."
    >
      <QueryView of={gates}>
        {({ gates: open }) =>
          open.length === 0 ? (
            <Empty title="No open gates">
              A workflow opens one with <code>await tape.gate(…)</code>. It stays here until it is answered or times
              out.
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
