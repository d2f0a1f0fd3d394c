import { useQuery } from "@tanstack/react-query";
import { formatDuration, plural } from "../format.ts";
import { retention } from "../queries.ts";
import { Facts } from "../ui/facts.tsx";
import { TimeAgo } from "../ui/time-ago.tsx";

/** The policy, what is overdue, and the last pass; absent if the reactor retention has never worked here. */
export function RetentionCard() {
  const found = useQuery(retention()).data;
  const state = found?.state;
  if (found === undefined || state === undefined) return null;
  const { last, rules } = state;
  const kept = Object.entries(last?.kept ?? {}).map(([reason, count]) => `${count} kept (${reason})`);
  return (
    <section className="card across" aria-labelledby="retention">
      <h2 id="retention">Retention</h2>
      <Facts
        of={[
          ["Policy", rules ?? ""],
          [
            "Due",
            found.due === 0 ? "nothing" : `${plural(found.due, "tree")}, the first for ${formatDuration(found.lagMs)}`,
          ],
          ["Last pass", last === undefined ? "none" : <TimeAgo key="last" at={last.at} />],
          [
            "Archived",
            last === undefined ? "" : [plural(last.runs, "run"), plural(last.files, "file"), ...kept].join(", "),
          ],
          ...(last?.error === undefined
            ? []
            : [
                [
                  "Failed",
                  <span key="failed" className="bad-text">
                    {last.error}
                  </span>,
                ] as const,
              ]),
        ]}
      />
    </section>
  );
}
