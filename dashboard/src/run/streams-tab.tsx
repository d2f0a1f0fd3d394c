import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Run } from "../api.ts";
import { plural } from "../format.ts";
import * as queries from "../queries.ts";
import { Empty } from "../ui/empty.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { TimeAgo } from "../ui/time-ago.tsx";
import { useStreamParts } from "./stream-parts.ts";

/** Chunks that are read when a stream is opened; later ones follow live. */
const shownChunks = 1_000;

/** All streams of a run, one of them live: a browser has few connections to a server. */
export function StreamsTab({ run }: { readonly run: Run }) {
  const [chosen, choose] = useState<string>();
  return (
    <QueryView of={useQuery(queries.runStreams(run))}>
      {({ streams }) => {
        const shown = streams.find(({ name }) => name === chosen) ?? streams[0];
        if (shown === undefined)
          return <Empty title="No streams">Steps and decisions of this run stream nothing.</Empty>;
        return (
          <div className="streams">
            <ul className="lines card" aria-label="Streams of the run">
              {streams.map(({ name, next, at }) => (
                <li key={name}>
                  <button
                    type="button"
                    className="line"
                    aria-pressed={name === shown.name}
                    data-row
                    onClick={() => choose(name)}
                  >
                    <span className="line-text">
                      <span className="mono">{name}</span>
                      <span className="muted small">
                        {plural(next, "chunk")}, <TimeAgo at={at} />
                      </span>
                    </span>
                  </button>
                </li>
              ))}
            </ul>
            <StreamParts key={shown.name} run={run} name={shown.name} next={shown.next} />
          </div>
        );
      }}
    </QueryView>
  );
}

function StreamParts({ run, name, next }: { readonly run: Run; readonly name: string; readonly next: number }) {
  const [from] = useState(Math.max(0, next - shownChunks)); // the stream stays open while the list is read again
  const parts = [...useStreamParts(run.id, name, from)];
  return (
    <article className="card" aria-label={`Stream ${name}`}>
      <header>
        <h2>{name}</h2>
        <span className="muted small">{run.endedAt === null ? "live" : "complete"}</span>
      </header>
      {from > 0 && <p className="muted small">The last {shownChunks} chunks when it was opened, and all since.</p>}
      {parts.map(([part, text]) => (
        <section key={part} aria-label={`Operation ${part}`}>
          <h3 className="small muted">Operation at {part}</h3>
          <pre className="mono stream-text" aria-live="polite">
            {text}
          </pre>
        </section>
      ))}
    </article>
  );
}
