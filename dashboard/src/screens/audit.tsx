import { useInfiniteQuery } from "@tanstack/react-query";
import { call } from "../api.ts";
import { brief, momentOf } from "../format.ts";
import { Answer, Empty, Screen } from "../ui/parts.tsx";

const pageRows = 50;

export function Audit() {
  const audit = useInfiniteQuery({
    queryKey: ["audit"],
    queryFn: ({ pageParam }) => call("audit", { query: { before: pageParam, limit: pageRows } }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ entries }) => (entries.length < pageRows ? undefined : entries.at(-1)?.cursor),
  });
  return (
    <Screen title="Audit" about="What people did, and why; each was written together with what it did.">
      <Answer of={audit}>
        {({ pages }) => {
          const entries = pages.flatMap((page) => page.entries);
          if (entries.length === 0) {
            return (
              <Empty title="Nobody has done anything by hand">
                Takeovers, verdicts, redrives and forks will be here.
              </Empty>
            );
          }
          return (
            <>
              <div className="scroll">
                <table>
                  <thead>
                    <tr>
                      <th scope="col">When</th>
                      <th scope="col">Who</th>
                      <th scope="col">What</th>
                      <th scope="col">Why</th>
                    </tr>
                  </thead>
                  <tbody>
                    {entries.map(({ cursor, at, who, action, subject, reason, detail }) => (
                      <tr key={cursor}>
                        <td className="muted">{momentOf(at)}</td>
                        <td>{who}</td>
                        <td>
                          {action.replaceAll("_", " ")} <span className="mono">{subject ?? "the store"}</span>
                          <span className="muted small block mono">{brief(detail, 100)}</span>
                        </td>
                        <td>{reason}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
              {audit.hasNextPage && (
                <button type="button" onClick={() => void audit.fetchNextPage()}>
                  Earlier
                </button>
              )}
            </>
          );
        }}
      </Answer>
    </Screen>
  );
}
