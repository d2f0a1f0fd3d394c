import { useEffect, useState } from "react";
import { request } from "../api.ts";
import { opened } from "../sealed.ts";

/** What is kept of a part on the screen. */
const maxChars = 20_000;
/** A stream that broke off is opened again after this time. */
const reopenMs = 2_000;

interface ShownChunk {
  readonly offset: number;
  readonly part: number;
  readonly value?: unknown;
  readonly rewound?: true;
}

/** Models emit parts with text; other values are shown as JSON. */
function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  const { type, text } = (typeof value === "object" && value !== null ? value : {}) as {
    type?: string;
    text?: unknown;
  };
  return (type === "text" || type === "reasoning") && typeof text === "string" ? text : `${JSON.stringify(value)}\n`;
}

/** The texts of a stream from an offset on, by part: a part that starts again replaces what it has shown. */
export function useStreamParts(run: string, name: string, from: number): ReadonlyMap<number, string> {
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
          shown.set(part, rewound === true ? "" : `${shown.get(part) ?? ""}${textOf(value)}`.slice(-maxChars));
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
  return parts;
}
