import { z } from "zod";

const text = z.string().min(1).max(2_048);
const name = z.string().min(1).max(512);
const whole = z.int().min(1);
const address = text.regex(/^https?:\/\/[^\s/]+\S*$/, "must be an address, such as https://push.example/{reactor}");

/** A queue of Cloud Tasks. */
const tasks = {
  queue: name.optional().describe("Queue of Cloud Tasks, projects/P/locations/L/queues/Q"),
  service_account: name.optional().describe("Service account whose token the calls of Cloud Tasks carry"),
  audience: name.optional().describe("Audience of that token. Default: the address"),
};

/** A NATS cluster. */
const nats = {
  servers: z.array(text).min(1).max(64).optional().describe("Addresses of NATS servers"),
  prefix: name.optional().describe("First part of NATS subjects. Default: tape"),
  token: text.optional().describe("Token for NATS"),
  user: name.optional().describe("User of NATS"),
  password: text.optional().describe("Password of that user"),
};

const waker = z.strictObject({
  kind: z
    .enum(["webhook", "pubsub", "cloud_tasks", "nats"])
    .default("webhook")
    .describe("How wake-ups are sent: signed POST requests, messages of Pub/Sub or NATS, or tasks of Cloud Tasks"),
  url: address
    .optional()
    .describe("webhook, cloud_tasks: address of the handler; {reactor} is replaced by the reactor's name"),
  secrets: z.array(text).max(10).optional().describe("whsec_ secrets that sign the requests of a webhook"),
  topic: name.optional().describe("Topic of Pub/Sub, projects/P/topics/T"),
  ...tasks,
  endpoint: address.optional().describe("Endpoint of Pub/Sub or Cloud Tasks. Default: the global one"),
  ...nats,
  batch: whole.max(1_000).default(10).describe("Due items for which one request is sent"),
  concurrency: whole.max(1_000).default(10).describe("webhook: maximum number of requests in progress per reactor"),
  timeout_s: z
    .number()
    .positive()
    .max(3_600)
    .default(65)
    .describe("webhook: how long a request may take; longer than within of the handler"),
});

const alarms = z.strictObject({
  kind: z.enum(["cloud_tasks", "nats"]).optional().describe("Where alarms are set, for timers with mode: alarms"),
  url: address.optional().describe("cloud_tasks: address of the sweep handler"),
  ...tasks,
  endpoint: address.optional().describe("Endpoint of Cloud Tasks. Default: the global one"),
  ...nats,
});

/** `tape.push`: reactors that run behind handlers, and what calls these. */
export const pushSchema = z
  .strictObject({
    waker: waker.prefault({}).describe("What wakes the handlers"),
    alarms: alarms.prefault({}).describe("What calls the sweep handler at a time"),
  })
  .prefault({})
  .describe("Reactors behind handlers");

export type WakerSettings = z.output<typeof waker>;
export type AlarmSettings = z.output<typeof alarms>;
