import { TapeError } from "../model/errors.ts";
import { shown } from "../sdk/validate.ts";

/** Tokens of a model call. `cached` and `cacheWrite` are part of `input`, `reasoning` is part of `output`. */
export interface Usage {
  /** Tokens that the model read. */
  readonly input: number;
  /** Tokens that the model wrote. */
  readonly output: number;
  /** Tokens of `input` that came from a cache. */
  readonly cached?: number;
  /** Tokens of `input` that went into a cache. */
  readonly cacheWrite?: number;
  /** Tokens of `output` that were reasoning. */
  readonly reasoning?: number;
}

/** US dollars for a million tokens. Without its own price, a cached token costs as much as any other. */
export interface Price {
  /** US dollars for a million tokens that the model reads. */
  readonly input: number;
  /** US dollars for a million tokens that the model writes. */
  readonly output: number;
  /** The same for tokens that come from a cache. */
  readonly cached?: number;
  /** The same for tokens that go into a cache. */
  readonly cacheWrite?: number;
}

/**
 * Prices by `provider/model` or by model, or a function. Prices change weekly, so Tape brings none.
 *
 * @example
 * const prices: Prices = { "gpt-6": { input: 2.5, output: 10, cached: 0.25 } };
 */
export type Prices = Readonly<Record<string, Price>> | ((model: string, usage: Usage) => number | undefined);

const million = 1_000_000;

/** The price of a call in US dollars; undefined: no price is known. */
export function costOf(prices: Prices | undefined, model: string, usage: Usage): number | undefined {
  if (prices === undefined) return undefined;
  if (typeof prices === "function") return checked(model, prices(model, usage));
  const name = model.slice(model.indexOf("/") + 1);
  const price = Object.hasOwn(prices, model) ? prices[model] : Object.hasOwn(prices, name) ? prices[name] : undefined;
  if (price === undefined) return undefined;
  const { cached = 0, cacheWrite = 0 } = usage;
  const other = Math.max(0, usage.input - cached - cacheWrite);
  const { cached: cachedPrice = price.input, cacheWrite: writePrice = price.input } = price;
  const sum = other * price.input + cached * cachedPrice + cacheWrite * writePrice + usage.output * price.output;
  return checked(model, sum / million);
}

function checked(model: string, cost: number | undefined): number | undefined {
  if (cost === undefined || (Number.isFinite(cost) && cost >= 0)) return cost;
  throw new TapeError("TAPE_BAD_INPUT", `the price of ${model} is not a number of dollars: ${shown(cost)}`, {
    field: "price",
  });
}

/** Characters of a token, on the low side: an estimate that is too high is returned, one too low overruns a cap. */
const charsPerToken = 3.5;

export const tokensOf = (chars: number): number => Math.ceil(chars / charsPerToken);
