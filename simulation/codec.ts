import { createHash } from "node:crypto";
import type { Random } from "../src/base/random.ts";
import { seededRandom } from "../src/base/random.ts";
import { aesGcm } from "../src/seal/aes-gcm.ts";
import type { PayloadCodec } from "../src/seal/payload-codec.ts";
import { chance } from "./draw.ts";

const keyOf = (name: string): Uint8Array => createHash("sha256").update(name).digest();
const keys = { old: keyOf("old"), new: keyOf("new") };

/** Share of plans whose replicas encrypt. */
const codecShare = 0.035;
/** Shorter texts, such as numbers, stand in rows anyway. */
const minChars = 24;

interface Before {
  readonly rewind: unknown;
  readonly serverless: unknown;
  readonly sink: unknown;
  readonly callers: readonly unknown[];
  readonly neighbours: { readonly actions: readonly unknown[] };
}

/**
 * The replicas encrypt payloads. Not in a rewound store, nor where programs without the codec start runs or read
 * payloads. Drawn from a generator of its own, so that plans without it stay unchanged.
 */
export function withCodec<P extends Before>(seed: number | string, plan: P): P & { readonly codec: boolean } {
  const plain = plan.rewind !== undefined || plan.serverless !== undefined || plan.sink !== undefined;
  const others = plan.callers.length > 0 || plan.neighbours.actions.length > 0;
  return { ...plan, codec: !plain && !others && chance(seededRandom(`codec ${seed}`), codecShare) };
}

/** The codecs of one simulation, and what they have been given to hide. */
export class WorldCodec {
  /** Texts of payloads. */
  readonly hidden = new Set<string>();

  /** `turn`: the key is rotated with each incarnation of a replica, so that every run has payloads of both. */
  of(turn: number, random: Random): PayloadCodec {
    const codec = aesGcm({ keys, current: turn % 2 === 0 ? "old" : "new", hashKey: keyOf("hash"), random });
    return {
      ...codec,
      encode: (payload, context) => {
        const text = Buffer.from(payload).toString("utf8");
        const alone = text.slice(text.indexOf("\n") + 1);
        if (alone.length >= minChars) this.hidden.add(alone);
        return codec.encode(payload, context);
      },
    };
  }
}
