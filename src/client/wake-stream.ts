import { backoffMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import { errorFields } from "../base/reason.ts";
import type { WakeHint } from "../store/contract/store.ts";
import { WakeHub } from "../store/wake-hub.ts";
import type { RpcCaller } from "./rpc-caller.ts";

export interface WakeStreamOptions {
  readonly caller: RpcCaller;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

const pauses = { baseMs: 100, capMs: 5_000 };

/**
 * One stream of wake hints for all listeners, while there are any:
 *
 *   silent ──first listener──▶ opening ──▶ open ──ends──▶ pausing ──▶ opening
 *      ▲────────────────── last listener leaves, closed ────┘
 *
 * Hints are lost while it is not open, so every listener rechecks whenever it opens.
 */
export class WakeStream {
  readonly #options: WakeStreamOptions;
  readonly #wakes: WakeHub;
  #stop: AbortController | undefined;

  constructor(options: WakeStreamOptions) {
    this.#options = options;
    this.#wakes = new WakeHub((error) => options.log("error", "wake.listener_failed", { ...errorFields(error) }));
  }

  on(listener: (wake: WakeHint) => void): () => void {
    const unsubscribe = this.#wakes.on(listener);
    if (this.#stop === undefined) {
      this.#stop = new AbortController();
      void this.#follow(this.#stop.signal);
    }
    return () => {
      unsubscribe();
      if (this.#wakes.size === 0) this.close();
    };
  }

  close(): void {
    this.#stop?.abort();
    this.#stop = undefined;
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { caller, clock, random, log } = this.#options;
    for (let tries = 1; !signal.aborted; tries++) {
      try {
        const lines = caller.lines("store.wakeHints", {}, signal, () => {
          tries = 1;
          this.#wakes.emit({ of: "any" });
        });
        for await (const wake of lines) this.#wakes.emit(wake);
      } catch (error) {
        log("debug", "client.wake_stream_ended", { ...errorFields(error) });
      }
      if (!signal.aborted) await clock.sleep(backoffMs(tries, pauses, random), signal);
    }
  }
}
