import { useEffect, useRef, useState } from "react";
import type { Queue } from "../api.ts";

const windowMs = 60_000;
/** A rate of a shorter time jumps too much to be read. */
const minMs = 5_000;

interface Sample {
  readonly at: number;
  readonly started: ReadonlyMap<string, number>;
}

/** Starts a minute of each queue, from the totals that this page has read; undefined: it has not read for long enough. */
export function useStartRate(queues: readonly Queue[] | undefined): (name: string) => number | undefined {
  const samples = useRef<Sample[]>([]);
  const [rates, setRates] = useState<ReadonlyMap<string, number>>(new Map());
  useEffect(() => {
    if (queues === undefined) return;
    const now = performance.now();
    const current = { at: now, started: new Map(queues.map(({ name, started }) => [name, started])) };
    samples.current = [...samples.current.filter(({ at }) => now - at <= windowMs), current];
    const [first] = samples.current;
    if (first === undefined || now - first.at < minMs) return;
    const perMinute = windowMs / (now - first.at);
    setRates(
      new Map(
        queues.flatMap(({ name, started }) => {
          const before = first.started.get(name);
          return before === undefined ? [] : [[name, (started - before) * perMinute] as const];
        }),
      ),
    );
  }, [queues]);
  return (name) => rates.get(name);
}
