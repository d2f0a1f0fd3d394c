import { useQuery } from "@tanstack/react-query";
import { call, type Wire } from "../api.ts";
import { Meter } from "../ui/meter.tsx";

/** From here on it is worth saying: the next start may be refused. */
const near = 0.8;

type Kind = keyof Wire<"quotas.get">["used"];
const kinds: Readonly<Record<Kind, string>> = {
  runs: "runs that have not ended",
  bytes: "bytes of records",
  schedules: "schedules",
};

/** Quotas of which most is used; nothing where all have room. */
export function QuotaWarnings() {
  const { data } = useQuery({ queryKey: ["quota"], queryFn: () => call("quotas.get") });
  if (data === undefined) return null;
  const tight = Object.entries(kinds).flatMap(([name, meaning]) => {
    const limit = data.limits[name as Kind];
    const used = data.used[name as Kind];
    return limit === null || used === null || used < limit * near ? [] : [{ name, meaning, limit, used }];
  });
  if (tight.length === 0) return null;
  return (
    <section className="card" aria-labelledby="quotas">
      <h2 id="quotas">Quotas</h2>
      {tight.map(({ name, meaning, limit, used }) => (
        <div className="budget" key={name}>
          <span>
            {used.toLocaleString("en")} of {limit.toLocaleString("en")} {meaning}
            {used >= limit && <span className="muted small"> · what comes next is refused</span>}
          </span>
          <Meter share={limit === 0 ? 1 : used / limit} tone={used >= limit ? "bad" : "wait"} label={`${name} used`} />
        </div>
      ))}
    </section>
  );
}
