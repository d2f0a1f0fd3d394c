import { z } from "zod";
import { deploySchema } from "./deploy-schema.ts";
import { eventsSchema } from "./events-schema.ts";
import { pushSchema } from "./push-schema.ts";
import { referenceForms, referencePattern } from "./reference.ts";
import { retentionSchema } from "./retention-schema.ts";

/** The built-in reactors, in the order in which they are listed. */
export const builtIns = ["recovery", "reconciler", "outbox", "timers", "compensation"] as const;
export type BuiltIn = (typeof builtIns)[number];

const text = z.string().min(1);
const whole = z.int().min(1);
const handler = text.regex(referencePattern, `must be ${referenceForms}`);

/** A longer pause, lease or back-off is probably a wrong unit. */
const dayMs = 86_400_000;
const dayS = 86_400;

const tuning = {
  enabled: z.boolean().default(true).describe("Whether this process runs the reactor"),
  mode: z
    .enum(["loop", "push", "alarms"])
    .default("loop")
    .describe(
      "loop: tape-reactors runs it; push: it runs behind a handler, which tape-reactors --announce wakes; alarms (timers only): alarms of tape.push.alarms call a sweep handler",
    ),
  batch: whole.max(1_000).default(50).describe("Maximum number of items claimed in one poll"),
  concurrency: whole.max(10_000).default(50).describe("Maximum number of items processed at once"),
  per_connector: whole
    .max(10_000)
    .optional()
    .describe(
      "Maximum number of those for one connector (or one effect without a connector), so that one that hangs does not block the others. Default: half of concurrency",
    ),
  lease_ttl_s: z.number().positive().max(dayS).default(30).describe("Lifetime of an item's lease without renewal"),
  heartbeat_s: z
    .number()
    .positive()
    .max(dayS)
    .optional()
    .describe("Interval between renewals of a lease; at most half of lease_ttl_s. Default: a third of it"),
  backoff: z
    .strictObject({
      base_ms: whole.max(dayMs).default(1_000).describe("Pause after the first failure"),
      cap_ms: whole.max(dayMs).default(60_000).describe("Longest pause"),
      factor: z.number().min(1).max(10).default(2).describe("Factor by which each pause grows"),
    })
    .prefault({})
    .describe("Pauses between attempts on a failing item, with jitter"),
  takeover: z
    .strictObject({
      base_ms: whole
        .max(dayMs)
        .default(1_000)
        .describe("Pause after the first race for an expired lease that was lost"),
      cap_ms: whole.max(dayMs).default(10_000).describe("Longest pause; the pauses double up to it"),
    })
    .prefault({})
    .describe("Pauses of a process that came too late to take over an expired lease, with jitter"),
  lease_attempts: z
    .enum(["unlimited"])
    .default("unlimited")
    .describe("How many processes may try for a lease at once: the store decides, and those that lose retry"),
  max_attempts: z
    .union([whole, z.literal("unlimited")])
    .default("unlimited")
    .describe("After this many failed terms in a row, an item is parked for an hour and logged"),
  max_stall_s: z
    .number()
    .positive()
    .max(dayS)
    .optional()
    .describe("Only with a handler: a call that reports no progress for longer loses its lease; more than heartbeat_s"),
  pending_after_s: z
    .number()
    .positive()
    .max(366 * dayS)
    .optional()
    .describe(
      "Only for the reconciler: an outbox effect that has been due for longer is observed once before it is sent. Default: never",
    ),
};

const builtIn = z.strictObject({
  ...tuning,
  interval_ms: whole
    .max(dayMs)
    .default(5_000)
    .describe(
      "Polls at least this often while idle, with up to 10 % of jitter. The built-in reactors share one poll, which uses their shortest interval",
    ),
  handler: handler.optional().describe("Your function that replaces this reactor"),
});

const custom = z.strictObject({
  ...tuning,
  interval_ms: whole
    .max(366 * dayMs)
    .default(60_000)
    .describe("Interval between calls of the handler"),
  handler: handler.describe("Function to call: FILE#EXPORT or MODULE:EXPORT"),
});

const reactors = z
  .object({
    recovery: builtIn.prefault({}).describe("Drives runs that wait for a worker or whose worker has crashed"),
    reconciler: builtIn.prefault({}).describe("Observes effects in doubt and settles them"),
    outbox: builtIn.prefault({}).describe("Calls effects that were handed to the outbox"),
    timers: builtIn.prefault({}).describe("Fires timers and schedules"),
    compensation: builtIn.prefault({}).describe("Compensates the effects of failed and cancelled runs"),
  })
  .catchall(custom)
  .prefault({})
  .describe("Background reactors; any other name is a custom reactor");

/** The schema of `tape.yaml`. The JSON Schema, the variables and the tables of the docs are derived from it. */
export const configSchema = z
  .strictObject({
    project: z
      .strictObject({ name: text.optional().describe("Name of the project, shown in logs") })
      .prefault({})
      .describe("Your project"),
    agent: z
      .strictObject({
        runner_factory: handler.optional().describe("Function that builds the runner: FILE#EXPORT or MODULE:EXPORT"),
        codec_factory: handler
          .optional()
          .describe("Function that returns the payload codec, for workers and commands that may read payloads"),
      })
      .prefault({})
      .describe("Your code"),
    tape: z
      .strictObject({
        tenant: text.default("default").describe("Tenant of this process"),
        drain_s: z
          .number()
          .min(0)
          .max(dayS)
          .default(30)
          .describe("How long a stopping process waits for work in progress"),
        replay_patience_s: z
          .number()
          .min(1)
          .max(dayS)
          .default(60)
          .describe("How long a replay waits for the workflow to request the next operation in its journal"),
        slow_after_s: z
          .number()
          .positive()
          .max(dayS)
          .default(10)
          .describe("A step or decision that takes longer is logged, once per name"),
        store: z
          .strictObject({
            url: text
              .default("sqlite:./.tape/tape.db")
              .describe("memory:, sqlite:…, postgres://…, alloydb://… or spanner://…"),
            shards: z
              .record(z.string(), text.describe("The URL of a PostgreSQL database; the key is the shard's name"))
              .optional()
              .describe("Instead of url: several PostgreSQL databases, the URL of each by its name"),
            processes: z
              .enum(["many", "single"])
              .default("many")
              .describe("single locks an SQLite file for this process"),
          })
          .prefault({})
          .describe("Where journals are stored"),
        server: z
          .strictObject({
            listen: text.default("127.0.0.1:7878").describe("Address and port"),
            credentials: z
              .enum(["none", "required"])
              .default("none")
              .describe("none makes every caller an admin, and allows only loopback addresses"),
            bootstrap_token: text
              .optional()
              .describe("Token of the first admin, id.secret, whose secret has at least 32 characters"),
            plain: z
              .enum(["refused", "accepted"])
              .default("refused")
              .describe("accepted allows tokens without TLS on a public address, for a server behind a proxy with TLS"),
            origin: text
              .regex(/^https?:\/\/[^/]+$/, "must be a scheme and a host, such as https://tape.example")
              .optional()
              .describe("Public origin of the server, if a proxy in front of it has another name"),
            public_url: text
              .regex(/^https?:\/\/[^/?#]+[^?#]*$/, "must be an address, such as https://tape.example")
              .optional()
              .describe("Address under which other systems reach the server: the start of the URLs of callbacks"),
            stream_origins: text
              .optional()
              .describe("Origins of web pages that may read streams with a token for them, separated by commas"),
            codec_endpoint: text
              .regex(/^https?:\/\/[^/?#;,\s'"]+[^?#;,\s'"]*$/, "must be an address, such as https://codec.example/tape")
              .optional()
              .describe("Address of your codec endpoint, which the dashboard calls to show encrypted payloads"),
            trusted_proxies: text
              .optional()
              .describe(
                "Addresses or networks of proxies whose Forwarded or X-Forwarded-For is trusted, separated by commas",
              ),
            idle_s: z
              .number()
              .positive()
              .max(dayS)
              .default(75)
              .describe("How long a connection may be idle between calls"),
            tls: z
              .strictObject({
                cert: text.optional().describe("Certificate file (PEM)"),
                key: text.optional().describe("Private key file (PEM)"),
                client_ca: text.optional().describe("Accepts only clients with a certificate of this authority (PEM)"),
              })
              .prefault({})
              .describe("HTTPS"),
            limits: z
              .strictObject({
                body_bytes: whole
                  .max(2 ** 30)
                  .default(16_777_216)
                  .describe("Maximum bytes in the body of one call; only batches get that many"),
                bodies_bytes: whole
                  .max(2 ** 40)
                  .default(268_435_456)
                  .describe("Maximum bytes in all bodies together; a tenant gets half of them, a token a quarter"),
                values: whole
                  .max(100_000_000)
                  .default(100_000)
                  .describe("Maximum number of values in one body; a new name counts as ten"),
                depth: whole.max(200).default(64).describe("Maximum nesting of arrays and objects in a body"),
                requests: whole
                  .max(1_000_000)
                  .default(4_096)
                  .describe(
                    "Maximum number of concurrent calls; a tenant gets half of them, a token three quarters of that",
                  ),
                renewals: whole
                  .max(1_000_000)
                  .default(2_048)
                  .describe(
                    "Maximum number of concurrent renewals and appends, in addition to other calls; shared alike",
                  ),
                waiters: whole
                  .max(1_000_000)
                  .default(2_048)
                  .describe("Maximum number of calls that wait for the end of a run; shared alike"),
                streams: whole.max(1_000_000).default(2_048).describe("Maximum number of open streams; shared alike"),
                connections: whole.max(1_000_000).default(8_192).describe("Maximum number of open connections"),
                connections_per_address: whole
                  .max(1_000_000)
                  .default(2_048)
                  .describe(
                    "Maximum number of connections from one address, or one /64 network of IPv6; trusted proxies are exempt",
                  ),
                unread_bytes: whole
                  .max(2 ** 40)
                  .default(268_435_456)
                  .describe("Maximum bytes in all unread responses; above it, the oldest responses are aborted"),
              })
              .prefault({})
              .describe("Limits of the server"),
            rate: z
              .strictObject({
                per_second: whole.max(10_000_000).default(10_000).describe("Sustained calls per second of one tenant"),
                burst: whole.max(10_000_000).default(20_000).describe("Burst of calls of one tenant"),
                failed_sign_ins: whole
                  .max(10_000_000)
                  .default(120)
                  .describe("Failed sign-ins per minute from one address, before it must wait"),
              })
              .prefault({})
              .describe("Rate limits of a tenant"),
            tokens: z
              .strictObject({
                default_days: whole
                  .min(1)
                  .max(36_500)
                  .optional()
                  .describe("Lifetime of a token without an expiry; by default it is valid until revoked"),
                max_days: whole
                  .min(1)
                  .max(36_500)
                  .optional()
                  .describe("Longest lifetime of a token; also the lifetime of a token without an expiry"),
              })
              .prefault({})
              .describe("Lifetimes of tokens created through this server"),
          })
          .prefault({})
          .describe("The HTTP interface"),
        metrics: z
          .strictObject({
            listen: text
              .optional()
              .describe(
                "PORT or HOST:PORT where tape-reactors answers probes and scrapes; without a host only this machine reaches it. Default: PORT of the environment on all addresses, otherwise none",
              ),
          })
          .prefault({})
          .describe("Health and metrics of a process"),
        log: z
          .strictObject({
            level: z
              .enum(["debug", "info", "warn", "error", "silent"])
              .default("info")
              .describe("Lowest level that is written to stderr"),
          })
          .prefault({})
          .describe("Log on standard error: readable on a terminal, otherwise JSON lines"),
        push: pushSchema,
        reactors,
        events: eventsSchema,
        retention: retentionSchema,
        deploy: deploySchema,
      })
      .prefault({})
      .describe("Tape itself"),
  })
  .describe("Configuration of Tape");

export type Config = z.output<typeof configSchema>;
export type ReactorSettings = Config["tape"]["reactors"]["recovery"];

/** The JSON Schema, with which editors complete keys, show descriptions and mark mistakes. */
export function configJsonSchema(): Record<string, unknown> {
  return z.toJSONSchema(configSchema, { io: "input", target: "draft-2020-12" }) as Record<string, unknown>;
}
