import { useInfiniteQuery } from "@tanstack/react-query";
import { call } from "../api.ts";
import { brief, formatTime } from "../format.ts";
import { Empty } from "../ui/empty.tsx";
import { Screen } from "../ui/screen.tsx";
import { QueryTable } from "../ui/table.tsx";

const pageRows = 50;

export function AuditScreen() {
  const audit = useInfiniteQuery({
    queryKey: ["audit"],
    queryFn: ({ pageParam }) => call("audit", { query: { before: pageParam, limit: pageRows } }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ entries }) => (entries.length < pageRows ? undefined : entries.at(-1)?.cursor),
  });
  return (
    <Screen title="Audit" about="What people did, and why; each was written together with what it did.">
      <QueryTable
        of={audit}
        rows={({ pages }) => pages.flatMap((page) => page.entries)}
        keyOf={({ cursor }) => cursor}
        empty={
          <Empty title="Nobody has done anything by hand">Takeovers, verdicts, redrives and forks will be here.</Empty>
        }
        columns={[
          { name: "When", look: "muted when", cell: ({ at }) => formatTime(at) },
          { name: "Who", cell: ({ who }) => who },
          {
            name: "What",
            cell: ({ action, subject, detail }) => (
              <>
                {action.replaceAll("_", " ")} <span className="mono">{subject ?? "the store"}</span>
                <span className="muted small block mono">{brief(detail, 100)}</span>
              </>
            ),
          },
          { name: "Why", cell: ({ reason }) => reason },
        ]}
      />
      {audit.hasNextPage && (
        <button type="button" onClick={() => void audit.fetchNextPage()}>
          Earlier
        </button>
      )}
    </Screen>
  );
}
