import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Run } from "../api.ts";
import * as queries from "../queries.ts";
import { TimeAgo } from "../ui/time-ago.tsx";
import { useStreamParts } from "./stream-parts.ts";

/** The streams of a run. One is followed at a time: a browser has few connections to a server. */
export function StreamCards({ run }: { readonly run: Run }) {
  const streams = useQuery(queries.runStreams(run)).data?.streams ?? [];
  const [chosen, choose] = useState<string>();
  const shown = streams.find(({ name }) => name === chosen) ?? streams[0];
  if (shown === undefined) return null;
  return (
    <section className="cards" aria-label="Streams">
      <article className="card" aria-label={`Stream ${shown.name}`}>
        <h2>Stream {shown.name}</h2>
        <p className="muted small">
          {shown.next} chunks, <TimeAgo at={shown.at} />
        </p>
        <StreamText key={shown.name} run={run.id} name={shown.name} from={Math.max(0, shown.next - 1_000)} />
        {streams.length > 1 && (
          <p>
            {streams.map(({ name }) => (
              <button key={name} type="button" disabled={name === shown.name} onClick={() => choose(name)}>
                {name}
              </button>
            ))}
          </p>
        )}
      </article>
    </section>
  );
}

function StreamText({ run, name, from }: { readonly run: string; readonly name: string; readonly from: number }) {
  const [first] = useState(from); // the stream stays open while the list is read again
  const text = [...useStreamParts(run, name, first).values()].join("");
  return (
    <pre className="mono" aria-live="polite">
      {text}
    </pre>
  );
}
