import { useQuery } from "@tanstack/react-query";
import type { Wire } from "../api.ts";
import { quota } from "../queries.ts";
import { Meter } from "../ui/meter.tsx";

/** From this share on the next start may be rejected soon. */
const warnShare = 0.8;

type Kind = keyof Wire<"quotas.get">["used"];
const kinds: Readonly<Record<Kind, string>> = {
  runs: "runs that have not ended",
  bytes: "bytes of records",
  schedules: "schedules",
};

/** Quotas that are nearly used up; renders nothing while there are none. */
export function QuotaWarnings() {
  const { data } = useQuery(quota());
  if (data === undefined) return null;
  const tight = Object.entries(kinds).flatMap(([name, noun]) => {
    const limit = data.limits[name as Kind];
    const used = data.used[name as Kind];
    return limit === null || used === null || used < limit * warnShare ? [] : [{ name, noun, limit, used }];
  });
  if (tight.length === 0) return null;
  return (
    <section className="card" aria-labelledby="quotas">
      <h2 id="quotas">Quotas</h2>
      {tight.map(({ name, noun, limit, used }) => (
        <div className="budget" key={name}>
          <span>
            {used.toLocaleString("en")} of {limit.toLocaleString("en")} {noun}
            {used >= limit && <span className="bad-text small"> · limit reached, new ones are rejected</span>}
          </span>
          <Meter share={limit === 0 ? 1 : used / limit} tone={used >= limit ? "bad" : "wait"} label={`${name} used`} />
        </div>
      ))}
    </section>
  );
}
