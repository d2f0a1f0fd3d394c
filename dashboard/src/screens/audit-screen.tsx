import { useInfiniteQuery } from "@tanstack/react-query";
import { brief, formatTime } from "../format.ts";
import { auditPages } from "../queries.ts";
import { Empty } from "../ui/empty.tsx";
import { LoadMore } from "../ui/load-more.tsx";
import { Screen } from "../ui/screen.tsx";
import { QueryTable } from "../ui/table.tsx";

export function AuditScreen() {
  const audit = useInfiniteQuery(auditPages());
  return (
    <Screen
      title="Audit log"
      about="Operator actions and their reasons, each recorded in the same transaction as the change it made."
    >
      <QueryTable
        of={audit}
        rows={({ pages }) => pages.flatMap((page) => page.entries)}
        keyOf={({ cursor }) => cursor}
        empty={<Empty title="No operator actions yet">Takeovers, resolutions, redrives and forks appear here.</Empty>}
        columns={[
          { name: "Time", className: "muted when", cell: ({ at }) => formatTime(at) },
          {
            name: "Operator",
            cell: ({ by, via }) => (
              <>
                {by}
                {via?.channel === "mcp" && <span className="muted small block">via mcp</span>}
              </>
            ),
          },
          {
            name: "Action",
            cell: ({ action, subject, detail }) => (
              <>
                {action.replaceAll("_", " ")} <span className="mono">{subject ?? "store"}</span>
                <span className="muted small block mono">{brief(detail, 100)}</span>
              </>
            ),
          },
          { name: "Reason", cell: ({ reason }) => reason },
        ]}
      />
      <LoadMore of={audit} />
    </Screen>
  );
}
