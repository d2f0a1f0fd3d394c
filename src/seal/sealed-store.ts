import type { Awaitable } from "../base/chain.ts";
import type { Limits } from "../model/limits.ts";
import { splitsValues } from "../store/blob-store.ts";
import type { IntakeOps, Store } from "../store/contract/store.ts";
import type { PayloadCodec, RedactPayload } from "./payload-codec.ts";
import { PayloadCoder, schedulePlace } from "./payload-coder.ts";
import { RunSubjects } from "./run-subjects.ts";
import { SealedReads } from "./sealed-reads.ts";
import { holdsSealed, SealedWrites } from "./sealed-writes.ts";

/** What happens to payloads at the edge of a process. */
export interface SealOptions {
  readonly codec?: PayloadCodec | undefined;
  readonly redact?: RedactPayload | undefined;
}

/** A store behind a codec, in the process that has its keys. */
export interface SealedStore extends Store {
  readonly sealed: {
    /** The same store with payloads as it has them, for what leaves this process: fan-outs, other programs. */
    readonly inner: Store;
    /** What the code of a run receives in place of what it has returned. */
    readonly redact: RedactPayload | undefined;
    /** A payload of a run, for calls that are not the store's: operator actions behind a server. */
    seal(tenant: string, run: string, kind: string, field: string, value: unknown): Promise<unknown>;
    /** A schedule's input stays sealed in its row, and goes so into its runs: a reactor needs no key. */
    sealSchedule(tenant: string, id: string, input: unknown, workflow: string): Awaitable<unknown>;
    openSchedule(tenant: string, id: string, input: unknown): Promise<unknown>;
    /** The most bytes that a payload of this size takes once it is sealed. */
    sizeOf(bytes: number): number;
  };
}

export const isSealedStore = (store: Store): store is SealedStore => "sealed" in store;

/** The envelope: key id, place, nonce and tag, with room for codecs that add more. */
const envelopeBytes = 2_048;

const sealedSize = (bytes: number): number => Math.ceil((bytes * 4) / 3) + envelopeBytes;

/** A payload that is refused before it is sealed is refused where its author can handle it. */
function sealedLimits(limits: Limits): Limits {
  const inside = (bytes: number): number => Math.max(1, Math.floor(((bytes - envelopeBytes) * 3) / 4));
  const { payloadBytes, chunkBytes, blobBytes } = limits;
  return {
    ...limits,
    payloadBytes: inside(payloadBytes),
    chunkBytes: inside(chunkBytes),
    blobBytes: inside(blobBytes),
  };
}

/**
 * The same store for a process with a payload codec or a redaction: payloads are redacted and sealed before the store
 * gets them, and opened when it returns them. Whatever is behind this object, a database or a server, needs no key.
 */
export function sealedStore<S extends Store>(inner: S, { codec, redact }: SealOptions): S & SealedStore {
  const limits = codec === undefined ? inner.limits : sealedLimits(inner.limits);
  const coder = new PayloadCoder(codec, redact, limits, { splits: splitsValues(inner) });
  const subjects = new RunSubjects(inner.read);
  const writes = new SealedWrites(coder, subjects, limits);
  const intake = (ops: IntakeOps): IntakeOps => writes.intake(ops);
  return {
    ...inner,
    limits,
    intake: intake(inner.intake),
    claim: {
      ...inner.claim,
      find: async (request) => {
        const terms = await inner.claim.find(request);
        const { tenant } = request;
        const journals = terms.flatMap(({ kind, journal }) => (kind === "name" ? [] : [journal]));
        // A failure must not lose the terms: what was not loaded is read when it is needed.
        if (codec !== undefined && tenant !== undefined) await subjects.load(tenant, journals).catch(() => {});
        return terms.map(({ created, ...term }) =>
          created === undefined || holdsSealed(created) ? term : { ...term, created },
        );
      },
    },
    fenced: writes.fenced(inner.fenced),
    read: new SealedReads(coder, subjects, inner.read).read(),
    ...(inner.within && { within: writes.within(inner.within) }),
    once: (key) => intake(inner.once(key)),
    sealed: {
      inner,
      redact,
      seal: (tenant, run, kind, field, value) => writes.forRun(tenant, run, kind, field, value),
      sealSchedule(tenant, id, input, workflow) {
        const context = { tenant, kind: "schedule", field: "input", place: schedulePlace(id), workflow };
        return coder.seal(input, context, { hashed: true });
      },
      openSchedule: (tenant, id, input) =>
        coder.open(input, { tenant, kind: "schedule", field: "input", places: [schedulePlace(id)] }),
      sizeOf: (bytes) => (codec === undefined ? bytes : sealedSize(bytes)),
    },
  };
}
