import { z } from "zod";
import { queueShapes, slotStates } from "../model/queue.ts";
import { journal, name, whole } from "./shapes.ts";
import { runStatus } from "./views.ts";

/** The views of queues on the wire. Their types are those of the store's contract. */

const { rate, spec, change } = queueShapes;
const at = z.number();
const key = z.string();
const pauseView = z.strictObject({ by: z.string(), reason: z.string(), at });

export const queueSpec = spec;
export const queueChange = change;

export const queueView = z.strictObject({
  name,
  version: whole,
  spec,
  override: change.exactOptional(),
  limits: z.strictObject({
    concurrency: whole.exactOptional(),
    rate: rate.exactOptional(),
    perKey: z.strictObject({ concurrency: whole.exactOptional(), rate: rate.exactOptional() }).exactOptional(),
  }),
  paused: pauseView.exactOptional(),
  running: whole,
  waiting: whole,
  keys: whole,
  more: z.boolean(),
  oldestWaitMs: z.number().exactOptional(),
  nextAt: at.exactOptional(),
  started: whole,
});

export const partitionView = z.strictObject({
  key,
  running: whole,
  waiting: whole,
  weight: z.number(),
  paused: pauseView.exactOptional(),
  oldestWaitMs: z.number().exactOptional(),
  nextAt: at.exactOptional(),
  ready: z.boolean(),
});

const slot = { key, class: whole, state: z.enum(slotStates), sinceMs: z.number() };

export const slotView = z.strictObject({ run: name, journal, workflow: name, ...slot, status: runStatus });

export const cycleSteps = z.array(z.strictObject({ run: name, queue: name, key, holder: name })).readonly();
const full = { running: whole, limit: whole, runs: z.array(name).readonly() };
const queueReason = z.discriminatedUnion("why", [
  z.strictObject({ why: z.literal("delayed"), at }),
  z.strictObject({ why: z.literal("paused"), key: key.exactOptional(), by: z.string(), reason: z.string() }),
  z.strictObject({ why: z.literal("queue_full"), ...full }),
  z.strictObject({ why: z.literal("key_full"), ...full }),
  z.strictObject({ why: z.literal("rate"), key: key.exactOptional(), nextAt: at }),
  z.strictObject({ why: z.literal("behind"), runs: whole, more: z.boolean() }),
  z.strictObject({ why: z.literal("unserved"), workflow: name }),
  z.strictObject({ why: z.literal("cycle"), steps: cycleSteps }),
]);

export const queuePosition = z.strictObject({
  run: name,
  queue: z.string(), // empty: it has none, and starts later
  ...slot,
  reasons: z.array(queueReason).readonly(),
});
