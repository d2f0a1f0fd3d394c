import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { type Run, request } from "../api.ts";
import * as queries from "../queries.ts";
import { opened } from "../sealed.ts";
import { TimeAgo } from "../ui/time-ago.tsx";

/** What is kept of a stream on the screen. */
const maxChars = 20_000;
/** A stream that broke off is opened again after this time. */
const reopenMs = 2_000;

interface ShownChunk {
  readonly offset: number;
  readonly part: number;
  readonly value?: unknown;
  readonly rewound?: true;
}

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
  const text = useStream(run, name, first);
  return (
    <pre className="mono" aria-live="polite">
      {text}
    </pre>
  );
}

/** The text of a stream from an offset on, by part: a part that starts again replaces what it has shown. */
function useStream(run: string, name: string, from: number): string {
  const [parts, setParts] = useState<ReadonlyMap<number, string>>(new Map());
  useEffect(() => {
    const stop = new AbortController();
    const { signal } = stop;
    setParts(new Map());
    let next = from;
    const show = (chunks: readonly ShownChunk[]): void =>
      setParts((before) => {
        const shown = new Map(before);
        for (const { part, value, rewound } of chunks) {
          const text = typeof value === "string" ? value : `${JSON.stringify(value)}\n`;
          shown.set(part, rewound === true ? "" : `${shown.get(part) ?? ""}${text}`.slice(-maxChars));
        }
        return shown;
      });
    const read = async (): Promise<void> => {
      const { body } = await request("runs.stream", { params: { id: run, name }, query: { from: next }, signal });
      const reader = body!.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = "", page = await reader.read(); !page.done; page = await reader.read()) {
        const lines = `${rest}${page.value}`.split("\n");
        rest = lines.pop() ?? "";
        const chunks = await opened(lines.flatMap((line) => (line === "" ? [] : [JSON.parse(line) as ShownChunk])));
        next = (chunks.at(-1)?.offset ?? next - 1) + 1;
        if (chunks.length > 0) show(chunks);
      }
    };
    const keepReading = async (): Promise<void> => {
      while (!signal.aborted) {
        const ended = await read().then(
          () => true,
          () => false,
        );
        if (ended) return;
        await new Promise((resolve) => setTimeout(resolve, reopenMs));
      }
    };
    void keepReading();
    return () => stop.abort();
  }, [run, name, from]);
  return [...parts.values()].join("");
}
