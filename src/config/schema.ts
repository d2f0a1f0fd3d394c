import { z } from "zod";

/** The reactors that every process has, in the order in which people name them. */
export const builtIns = ["recovery", "reconciler", "outbox", "timers", "compensation"] as const;
export type BuiltIn = (typeof builtIns)[number];

const text = z.string().min(1);
const whole = z.int().min(1);
const handler = text.regex(/.#./, "must name a file and what it exports, as in ./app/reap.ts#reapOnce");

/** A day: a longer rest, lease or back-off is a mistake in the unit. */
const dayMs = 86_400_000;
const dayS = 86_400;

const tuning = {
  enabled: z.boolean().default(true).describe("Whether this process runs it"),
  batch: whole.max(1_000).default(50).describe("Items found in one look, at most"),
  concurrency: whole.max(10_000).default(50).describe("Items worked on at once, at most"),
  per_connector: whole
    .max(10_000)
    .optional()
    .describe(
      "Of these, items of one connector, or of one effect that has none: one that hangs holds up no other. Default: half of concurrency",
    ),
  lease_ttl_s: z.number().positive().max(dayS).default(30).describe("How long an item's lease lasts without renewal"),
  heartbeat_s: z
    .number()
    .positive()
    .max(dayS)
    .optional()
    .describe("How often leases are renewed; at most half of lease_ttl_s. Default: a third of it"),
  backoff: z
    .strictObject({
      base_ms: whole.max(dayMs).default(1_000).describe("The first pause after work that went wrong"),
      cap_ms: whole.max(dayMs).default(60_000).describe("The longest pause"),
      factor: z.number().min(1).max(10).default(2).describe("How much longer each pause is than the one before"),
    })
    .prefault({})
    .describe("Pauses between tries of an item that goes wrong; jittered"),
  max_attempts: z
    .union([whole, z.literal("unlimited")])
    .default("unlimited")
    .describe("After so many terms in a row that came to nothing, an item is parked for an hour and reported"),
};

const builtIn = z.strictObject({
  ...tuning,
  interval_ms: whole
    .max(dayMs)
    .default(100)
    .describe(
      "The first rest when there is nothing to do; doubles up to 5 s. One look serves all built-in reactors: the shortest counts",
    ),
  handler: handler.optional().describe("A function of yours that replaces this reactor"),
});

const custom = z.strictObject({
  ...tuning,
  interval_ms: whole
    .max(366 * dayMs)
    .default(60_000)
    .describe("How often the handler is called"),
  handler: handler.describe("The function to call: file#export"),
});

const reactors = z
  .object({
    recovery: builtIn.prefault({}).describe("Drives runs that wait for somebody, or whose process vanished"),
    reconciler: builtIn.prefault({}).describe("Finds out what became of acts in doubt"),
    outbox: builtIn.prefault({}).describe("Carries out acts that were handed over"),
    timers: builtIn.prefault({}).describe("Fires timers and schedules"),
    compensation: builtIn.prefault({}).describe("Undoes what runs that went wrong have done"),
  })
  .catchall(custom)
  .prefault({})
  .describe("What runs by itself; any other name is a reactor of your own");

/** The shape of `tape.yaml`: the only place that says what may be set. The JSON Schema and the docs follow from it. */
export const configSchema = z
  .strictObject({
    project: z
      .strictObject({ name: text.optional().describe("For people: logs and the dashboard show it") })
      .prefault({})
      .describe("What this is"),
    agent: z
      .strictObject({
        runner_factory: handler.optional().describe("The function that builds the runner: file#export"),
      })
      .prefault({})
      .describe("Your code"),
    tape: z
      .strictObject({
        tenant: text.default("default").describe("Whose runs this process works on"),
        drain_s: z
          .number()
          .min(0)
          .max(dayS)
          .default(30)
          .describe("How long a stopping process waits for what is under way"),
        replay_patience_s: z
          .number()
          .min(1)
          .max(dayS)
          .default(60)
          .describe("How long a replay waits for a workflow to ask for what its journal holds next"),
        slow_after_s: z
          .number()
          .positive()
          .max(dayS)
          .default(10)
          .describe("A step or decision that takes longer is named in the log, once for each name"),
        store: z
          .strictObject({
            url: text.default("sqlite:./.tape/tape.db").describe("memory:, sqlite:…, postgres://… or alloydb://…"),
            processes: z
              .enum(["many", "single"])
              .default("many")
              .describe("single locks an SQLite file for this process alone"),
          })
          .prefault({})
          .describe("Where journals are kept"),
        server: z
          .strictObject({
            listen: text.default("127.0.0.1:7878").describe("Address and port"),
            credentials: z
              .enum(["none", "required"])
              .default("none")
              .describe("none lets whoever reaches it be admin, and binds a loopback address only"),
            bootstrap_token: text
              .optional()
              .describe("A first admin's token, id.secret, with at least 32 characters of secret"),
            plain: z
              .enum(["refused", "accepted"])
              .default("refused")
              .describe("accepted lets tokens travel in clear to a public address, where a proxy in front speaks TLS"),
            origin: text
              .regex(/^https?:\/\/[^/]+$/, "must be a scheme and a host, as in https://tape.example")
              .optional()
              .describe("Where browsers find the server, if a proxy in front of it has another name"),
            trusted_proxies: text
              .optional()
              .describe("Addresses or networks of proxies whose Forwarded or X-Forwarded-For is believed, with commas"),
            idle_s: z
              .number()
              .positive()
              .max(dayS)
              .default(75)
              .describe("How long a connection may wait for its next call"),
            tls: z
              .strictObject({
                cert: text.optional().describe("The certificate's file (PEM)"),
                key: text.optional().describe("Its private key's file (PEM)"),
                client_ca: text
                  .optional()
                  .describe("Only callers with a certificate of this authority (PEM) get a connection"),
              })
              .prefault({})
              .describe("HTTPS"),
            limits: z
              .strictObject({
                body_bytes: whole
                  .max(2 ** 30)
                  .default(16_777_216)
                  .describe("Bytes of one call's body, at most; only batches may have so many"),
                bodies_bytes: whole
                  .max(2 ** 40)
                  .default(268_435_456)
                  .describe("Bytes of all bodies together; a tenant gets half of them, a token a quarter"),
                values: whole
                  .max(100_000_000)
                  .default(100_000)
                  .describe("Values in one body, at most, where a new name counts as ten"),
                depth: whole.max(200).default(64).describe("Levels of arrays and objects in it, at most"),
                requests: whole
                  .max(1_000_000)
                  .default(4_096)
                  .describe("Calls under way at once; a tenant gets half of them, a token three quarters of that"),
                renewals: whole
                  .max(1_000_000)
                  .default(2_048)
                  .describe("Renewals and appends under way at once, beside the other calls; shared alike"),
                waiters: whole
                  .max(1_000_000)
                  .default(2_048)
                  .describe("Calls that wait for the end of a run; shared alike"),
                streams: whole.max(1_000_000).default(2_048).describe("Streams open at once; shared alike"),
                connections: whole.max(1_000_000).default(8_192).describe("Connections open at once"),
                connections_per_address: whole
                  .max(1_000_000)
                  .default(2_048)
                  .describe("Connections of one address, or of one /64 network of IPv6; trusted proxies have no bound"),
                answers_bytes: whole
                  .max(2 ** 40)
                  .default(268_435_456)
                  .describe("Bytes of all answers that are written and not read; beyond it the oldest are cut off"),
              })
              .prefault({})
              .describe("Bounds of the door"),
            rate: z
              .strictObject({
                per_second: whole
                  .max(10_000_000)
                  .default(10_000)
                  .describe("Calls of one tenant in a second, over time"),
                burst: whole.max(10_000_000).default(20_000).describe("Calls of one tenant at once"),
                failed_sign_ins: whole
                  .max(10_000_000)
                  .default(120)
                  .describe("Bad credentials from one address in a minute, before it must wait"),
              })
              .prefault({})
              .describe("How fast a tenant may call"),
            tokens: z
              .strictObject({
                default_days: whole
                  .min(1)
                  .max(36_500)
                  .optional()
                  .describe("How long a token holds that names no expiry; absent: until it is revoked"),
                max_days: whole
                  .min(1)
                  .max(36_500)
                  .optional()
                  .describe("The longest that a token may hold; one that names no expiry gets this"),
              })
              .prefault({})
              .describe("How long tokens hold that are made through this server"),
          })
          .prefault({})
          .describe("The HTTP interface"),
        log: z
          .strictObject({
            level: z
              .enum(["debug", "info", "warn", "error", "silent"])
              .default("info")
              .describe("The least that is written to stderr"),
          })
          .prefault({})
          .describe("What is written to standard error: for people on a terminal, else as JSON lines"),
        reactors,
      })
      .prefault({})
      .describe("Tape itself"),
  })
  .describe("Settings of Tape");

export type Config = z.output<typeof configSchema>;
export type ReactorSettings = Config["tape"]["reactors"]["recovery"];

/** For editors: completes keys, shows descriptions, marks mistakes while one types. */
export function configJsonSchema(): Record<string, unknown> {
  return z.toJSONSchema(configSchema, { io: "input", target: "draft-2020-12" }) as Record<string, unknown>;
}
