import { z } from "zod";
import { group } from "../route.ts";
import { name, namesText, value, whole, wholeText } from "../shapes.ts";
import { runStatus } from "../views.ts";

const at = z.number();
const text = z.string();
const units = z.record(text, z.number());
const usage = { input: z.number(), output: z.number() };
const moreUsage = z
  .strictObject({ cached: z.number(), cacheWrite: z.number(), reasoning: z.number(), usd: z.number() })
  .partial().shape;

const toolEffect = z.strictObject({
  pos: whole,
  name: text,
  status: text,
  reason: text.exactOptional(),
  attempts: whole,
  token: text.exactOptional(),
  businessKey: text.exactOptional(),
  startedAt: at,
  settledAt: at.exactOptional(),
  value: value.exactOptional(),
  error: text.exactOptional(),
});

const turnGate = z.strictObject({
  pos: whole,
  name: text,
  status: z.enum(["OPEN", "RECEIVED", "TIMED_OUT", "WITHDRAWN"]),
  openedAt: at,
  resolvedAt: at.exactOptional(),
  binds: text.exactOptional(),
  payload: value.exactOptional(),
  note: whole.exactOptional(),
  value: value.exactOptional(),
  approved: z.boolean().exactOptional(),
  by: text.exactOptional(),
});

const turnChild = z.strictObject({ pos: whole, run: text, workflow: text, status: text.exactOptional() });

const turnCall = z.strictObject({
  id: text,
  name: text,
  input: value,
  effect: toolEffect.exactOptional(),
  approval: turnGate.exactOptional(),
  children: z.array(turnChild).exactOptional(),
  output: value.exactOptional(),
});

const turn = z.strictObject({
  pos: whole,
  seq: whole,
  lane: text,
  agent: text,
  under: z.strictObject({ pos: whole, call: text }).exactOptional(),
  model: text.exactOptional(),
  open: z.literal(true).exactOptional(),
  kept: z.literal(true).exactOptional(),
  startedAt: at.exactOptional(),
  at,
  latencyMs: z.number().exactOptional(),
  /** `{ role, parts }` each, in the shape of the OpenTelemetry messages of `gen_ai`. */
  messages: value,
  before: whole,
  settings: value.exactOptional(),
  tools: z.array(text).exactOptional(),
  hash: text.exactOptional(),
  changed: z.literal(true).exactOptional(),
  answer: value.exactOptional(),
  finish: text.exactOptional(),
  error: text.exactOptional(),
  usage: z.strictObject({ ...usage, ...moreUsage }).exactOptional(),
  attempts: whole,
  failures: z.array(z.strictObject({ attempt: whole, at, error: text })),
  lost: whole,
  presumed: units.exactOptional(),
  token: text,
  owner: text.exactOptional(),
  replayedBy: z.array(text),
  calls: z.array(turnCall),
  gates: z.array(turnGate).exactOptional(),
  children: z.array(turnChild).exactOptional(),
});

const bar = z.strictObject({ pos: whole, agent: text, ...z.strictObject({ ...usage, ...moreUsage }).partial().shape });

/** What runs and models say to each other. */
export const conversations = group({
  "runs.conversation": {
    method: "GET",
    path: "/v1/runs/{id}/conversation",
    role: "reader",
    repeat: "read",
    summary:
      "Reads the run's conversation with models, turn by turn from the number from on: messages, answers, tool calls " +
      "with their effects and approvals, tokens, costs and attempts; sums of all turns. For a reader the content is " +
      "hidden: lengths are left",
    params: z.strictObject({ id: name }),
    query: z.strictObject({ from: wholeText.exactOptional(), limit: wholeText.exactOptional() }),
    answer: z.strictObject({
      run: name,
      status: runStatus,
      turns: z.array(turn),
      from: whole,
      next: whole.exactOptional(),
      sums: z.strictObject({
        ...{ turns: whole, attempts: whole, lost: whole, ...usage, cached: z.number(), reasoning: z.number() },
        usd: z.number().exactOptional(),
        presumed: units,
        models: z.array(text),
        bars: z.array(bar),
      }),
      hidden: z.literal(true).exactOptional(),
      cut: z.literal(true).exactOptional(),
    }),
    errors: ["TAPE_RUN_NOT_FOUND"],
  },
  "runs.modelUsage": {
    method: "GET",
    path: "/v1/model-usage",
    role: "reader",
    repeat: "read",
    summary:
      "Reads what up to 100 runs have spent on models so far, in millionths: tokens, usd, calls, and the model of the " +
      "first call. Runs that have called none, and children, whose root pays, are left out",
    query: z.strictObject({ of: namesText }),
    answer: z.strictObject({
      runs: z.array(
        z.strictObject({
          ...{ id: name, calls: whole, tokens: whole },
          usd: whole.exactOptional(),
          model: text.exactOptional(),
        }),
      ),
    }),
  },
});
