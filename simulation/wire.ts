import { TapeError } from "../src/model/errors.ts";
import { problemOf, problemType, statusOf } from "../src/protocol/problem.ts";
import type { Transport, WireRequest, WireResponse } from "../src/protocol/transport.ts";
import type { VirtualTime } from "../testkit/kit/virtual-time.ts";
import type { Fault } from "./plan-faults.ts";

export interface WireOptions {
  readonly exchange: Transport;
  readonly time: VirtualTime;
  readonly travelMs: () => number;
  /** The planned fault of the next request. */
  readonly faultOf: (request: WireRequest) => Fault | undefined;
}

/** Longest wait of a client for a response, as over sockets. */
const responseTimeoutMs = 35_000;

/** The connection to the server: requests and responses take time, and each can fail. */
export function wireTo(options: WireOptions): Transport {
  const { exchange, time, travelMs, faultOf } = options;
  /** Delivers a request later, whatever its sender was answered. */
  const later = (request: WireRequest, ms: number): void =>
    void time.after(ms, () => void exchange(request).catch(() => {}));
  const deliver = async (request: WireRequest): Promise<WireResponse> => {
    await time.sleep(travelMs());
    const response = await exchange(request);
    await time.sleep(travelMs());
    return response;
  };
  return async (request) => {
    const fault = faultOf(request);
    const { edge, forMs = 0 } = fault ?? {};
    switch (fault?.kind) {
      case "fail":
        if (edge === "after") await deliver(request);
        else await time.sleep(travelMs());
        throw new Error("socket hang up");
      case "hang": {
        if (edge === "before") await time.sleep(Math.min(forMs, responseTimeoutMs));
        const response = await deliver(request);
        if (edge === "after") await time.sleep(Math.min(forMs, responseTimeoutMs));
        if (forMs > responseTimeoutMs) throw new Error(`no response within ${responseTimeoutMs} ms`);
        return response;
      }
      case "double":
        later(request, forMs);
        return deliver(request);
      case "late":
        later(request, forMs);
        throw new Error("socket hang up");
      case "gateway":
        if (edge === "after") await deliver(request);
        return { status: 502, headers: { "content-type": "text/html" }, body: Buffer.from("<h1>Bad Gateway</h1>") };
      case "busy":
        return overloaded();
      default:
        return deliver(request);
    }
  };
}

function overloaded(): WireResponse {
  const error = new TapeError("TAPE_OVERLOADED", "too many (injected)");
  const body = Buffer.from(JSON.stringify(problemOf(error)));
  return { status: statusOf(error.code), headers: { "content-type": problemType }, body };
}
