import { useQuery } from "@tanstack/react-query";
import type { Run } from "../api.ts";
import * as queries from "../queries.ts";
import { Json } from "../ui/json.tsx";
import { TimeAgo } from "../ui/time-ago.tsx";

/** What the run shows to its callers, and the requests that it has got. */
export function TalkCards({ run }: { readonly run: Run }) {
  const published = useQuery(queries.runPublished(run)).data?.published ?? [];
  const requests = useQuery(queries.runRequests(run)).data ?? [];
  if (published.length === 0 && requests.length === 0) return null;
  return (
    <section className="cards" aria-label="Talking">
      {published.length > 0 && (
        <article className="card" aria-label="Published values">
          <h2>Published</h2>
          {published.map(({ name, value, at }) => (
            <div key={name}>
              <p>
                <strong>{name}</strong>{" "}
                <span className="muted small">
                  <TimeAgo at={at} />
                </span>
              </p>
              <Json value={value ?? null} label={`Published ${name}`} />
            </div>
          ))}
        </article>
      )}
      {requests.length > 0 && (
        <article className="card" aria-label="Requests">
          <h2>Requests</h2>
          <ul>
            {requests.map(({ n, name, key, at, reply }) => (
              <li key={n}>
                <strong>{name}</strong> {key !== undefined && <span className="mono">{key}</span>}{" "}
                <span className="muted small">
                  asked <TimeAgo at={at} />, {reply}
                </span>
              </li>
            ))}
          </ul>
        </article>
      )}
    </section>
  );
}
