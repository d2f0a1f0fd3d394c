import { z } from "zod";

const text = z.string().min(1).max(2_048);
const name = z.string().min(1).max(512);
const names = z.array(name).min(1).max(256);

/** One sink of `tape.events.sinks`. */
const sink = z.strictObject({
  enabled: z.boolean().default(true).describe("Whether this process sends events to the sink"),
  kind: z
    .enum(["webhook", "cloudevents", "log", "function", "nats", "redis", "kafka", "pubsub"])
    .optional()
    .describe("Kind of the sink. Default: function if it has a handler"),
  url: text.optional().describe("Address of a webhook, of a receiver of CloudEvents, or of Redis"),
  servers: z.array(text).min(1).max(64).optional().describe("Addresses of NATS servers or of Kafka brokers"),
  endpoint: text.optional().describe("Regional endpoint of Pub/Sub. Default: the global one"),
  topic: name.optional().describe("Topic of Kafka (default: tape) or of Pub/Sub, projects/P/topics/T"),
  stream: name.optional().describe("Stream of Redis. Default: tape"),
  per_journal: z.boolean().optional().describe("Redis: one stream for each journal, which drops repeats"),
  max_length: z.int().min(1).max(1_000_000_000).optional().describe("Redis: about how many entries a stream keeps"),
  prefix: name.optional().describe("First part of NATS subjects. Default: tape"),
  token: text.optional().describe("Token for NATS"),
  user: name.optional().describe("User of NATS or Kafka"),
  password: text.optional().describe("Password of that user"),
  sasl: z
    .enum(["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
    .optional()
    .describe("How the user signs in to Kafka. Default: PLAIN"),
  tls: z.boolean().optional().describe("Reach Kafka brokers by TLS"),
  secrets: z
    .array(text)
    .min(1)
    .max(4)
    .optional()
    .describe("Signing secrets of a webhook, whsec_… or whsk_…; two while one is replaced"),
  mode: z
    .enum(["batch", "structured", "binary"])
    .optional()
    .describe("How CloudEvents are written into requests. Default: batch"),
  batch: z.int().min(1).max(1_000).optional().describe("Events in one call. Default: 100"),
  handler: text
    .regex(/.[#:]./, "must be FILE#EXPORT")
    .optional()
    .describe("Function that receives events: file#export"),
  allow: z.array(name).max(100).optional().describe("Addresses that may be reached although they are not public"),
  kinds: names
    .optional()
    .describe("Records that become events: outline, effects, wants, all, kinds, or groups such as run.*"),
  workflows: names.optional().describe("Only records of these workflows"),
  labels: z
    .array(name.regex(/^[^:]+:/, "must be LABEL:VALUE"))
    .min(1)
    .max(64)
    .optional()
    .describe("Only records of runs with all these labels, such as region:eu"),
  payload: z
    .enum(["facts", "values", "none"])
    .default("facts")
    .describe("facts: no value of a user leaves the store; values: whole records; none: only their kinds"),
  from: z.enum(["now", "start"]).default("now").describe("Where the first start begins"),
  lanes: z.int().min(1).max(256).default(16).describe("Runs are spread over this many parallel lanes"),
  window: z.int().min(1).max(100_000).default(4_000).describe("Events ahead of the checkpoint before reading stops"),
});

export const eventsSchema = z
  .strictObject({
    sinks: z.object({}).catchall(sink).prefault({}).describe("Where events go, by name"),
  })
  .prefault({})
  .describe("Events: what happens in the store, sent to other systems");

export type SinkSettings = z.output<typeof sink>;
