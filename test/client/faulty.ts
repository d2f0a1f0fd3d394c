import { type Clock, systemClock } from "../../src/base/clock.ts";
import type { Random } from "../../src/base/random.ts";
import { RequestNotSent } from "../../src/client/errors.ts";
import { TapeError } from "../../src/model/errors.ts";
import { problemOf, problemType, statusOf } from "../../src/protocol/problem.ts";
import type { Transport, WireResponse } from "../../src/protocol/transport.ts";
import { settled } from "../../testkit/clock.ts";

/** What may happen to a request on its way. Of all but the first and the last the caller cannot tell whether it arrived. */
export const faults = ["unsent", "request lost", "answer lost", "doubled", "late", "gateway", "overloaded"] as const;
export type Fault = (typeof faults)[number];

/** A way on which one request in `oneIn` goes wrong; counts what bit. */
export function faulty(
  exchange: Transport,
  random: Random,
  oneIn: number,
): { readonly exchange: Transport; readonly bitten: Map<Fault, number> } {
  const bitten = new Map<Fault, number>();
  const way: Transport = async (request) => {
    if (request.url === "/v1/store/wake-hints" || random.int(oneIn) !== 0) return exchange(request);
    const fault = faults[random.int(faults.length)]!;
    bitten.set(fault, (bitten.get(fault) ?? 0) + 1);
    switch (fault) {
      case "unsent":
        throw new RequestNotSent("no connection");
      case "request lost":
        throw new Error("socket hang up");
      case "answer lost":
        await exchange(request);
        throw new Error("socket hang up");
      case "doubled":
        return (await Promise.all([exchange(request), exchange(request)]))[1];
      case "late":
        await settled(20);
        return exchange(request);
      case "gateway":
        if (random.int(2) === 0) await exchange(request);
        return { status: 502, headers: { "content-type": "text/html" }, body: Buffer.from("<h1>Bad Gateway</h1>") };
      case "overloaded":
        return refusal(new TapeError("TAPE_OVERLOADED", "too many"));
    }
  };
  return { exchange: way, bitten };
}

export function refusal(error: TapeError, headers: Record<string, string> = {}): WireResponse {
  const body = Buffer.from(JSON.stringify(problemOf(error)));
  return { status: statusOf(error.code), headers: { "content-type": problemType, ...headers }, body };
}

/** Real time, fifty times as fast for pure waits. */
export const hurried: Clock = { ...systemClock, sleep: (ms, signal) => systemClock.sleep(ms / 50, signal) };
