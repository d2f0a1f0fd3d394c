import type { ConversationPage } from "../api.ts";
import { formatNumber } from "../format.ts";

const height = 60;
const minTurns = 12;

/** A bar of tokens for each turn: input below, output above. */
export function TokenBars({ bars }: { readonly bars: ConversationPage["sums"]["bars"] }) {
  if (bars.length < 2) return null;
  const top = Math.max(1, ...bars.map(({ input = 0, output = 0 }) => input + output));
  const largest = bars.findIndex(({ input = 0, output = 0 }) => input + output === top);
  const width = Math.max(minTurns, bars.length);
  const y = (tokens: number): number => height - (tokens / top) * height;
  const path = (of: (bar: (typeof bars)[number]) => readonly [from: number, to: number]): string =>
    bars
      .map((bar, k) => {
        const [from, to] = of(bar);
        return from === to ? "" : `M${k + 0.12} ${y(from)}V${y(to)}h0.76V${y(from)}Z`;
      })
      .join("");
  return (
    <figure className="chart token-bars">
      <svg
        viewBox={`0 0 ${width} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Tokens by turn: at most ${formatNumber(top)}, in turn ${largest + 1} of ${bars.length}`}
      >
        <path className="bar run" d={path(({ input = 0 }) => [0, input])} />
        <path className="bar ok" d={path(({ input = 0, output = 0 }) => [input, input + output])} />
      </svg>
      <figcaption className="muted small">
        Tokens by turn, at most {formatNumber(top)}. Below: input, above: output.
      </figcaption>
    </figure>
  );
}
