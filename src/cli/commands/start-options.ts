import { systemClock } from "../../base/clock.ts";
import { defined } from "../../base/defined.ts";
import { systemRandom } from "../../base/random.ts";
import { starterOf } from "../../model/approvers.ts";
import { onConflicts } from "../../model/queue.ts";
import { assertGateValue, type Runner } from "../../sdk/workflow.ts";
import type { RunSpec, StartSignal } from "../../store/contract/store.ts";
import { choicesOf, jsonOf, wholeOf } from "../app.ts";
import { type Invocation, type Option, UsageError } from "../command.ts";

/** When a run starts, in which queue, and what is sent with it. */
export const startOptions = {
  queue: { value: "NAME", help: "queue in which the run waits for a slot" },
  key: { value: "KEY", help: "key of the run in its queue" },
  priority: { value: "1-9", help: "priority in its queue; 1 is served first (default 5)" },
  delay: { value: "TIME", help: "start this much later, such as 10m" },
  "start-at": { value: "TIME", help: "start at this time, such as 2026-11-16T08:00Z" },
  expires: { value: "TIME", help: "cancel the run if it still waits in its queue after this time" },
  unique: { value: "KEY", help: "at most one live run of the workflow has this key" },
  "on-conflict": { value: onConflicts.join("|"), help: "with --unique: what to do if there is one (default: join)" },
  debounce: { value: "KEY", help: "starts with this key are one run, which gets the last input" },
  "debounce-wait": { value: "TIME", help: "with --debounce: it starts once no further start has come for this long" },
  "debounce-max": { value: "TIME", help: "with --debounce: it starts at the latest this long after the first start" },
  signal: { value: "GATE=JSON", many: true, help: "signal to send with the start, also to a run that lives already" },
  by: { value: "NAME", help: "the starter, for gates that the starter may not answer" },
} as const satisfies Record<string, Option>;

type StartFields = Pick<
  RunSpec,
  "queue" | "key" | "priority" | "delayMs" | "startAt" | "expiresMs" | "unique" | "debounce" | "starters" | "signals"
>;

export async function startFieldsOf(invocation: Invocation, runner: Runner): Promise<StartFields> {
  const [queue, key, by] = [invocation.text("queue"), invocation.text("key"), invocation.text("by")];
  const priority = wholeOf("--priority", invocation.text("priority"));
  const [delayMs, expiresMs] = [wholeMs(invocation.duration("delay")), wholeMs(invocation.duration("expires"))];
  const times = { delayMs, startAt: startAtOf(invocation), expiresMs };
  const signals = await signalsOf(invocation.all("signal"), runner);
  return {
    ...defined({ queue, key, priority, ...times, unique: uniqueOf(invocation), debounce: debounceOf(invocation) }),
    ...(by !== undefined && { starters: [starterOf({ by })!] }),
    ...(signals.length > 0 && { signals }),
  };
}

function uniqueOf(invocation: Invocation): RunSpec["unique"] {
  const key = invocation.text("unique");
  const [onConflict] = choicesOf("--on-conflict", invocation.text("on-conflict"), onConflicts) ?? [];
  if (onConflict !== undefined && key === undefined) throw new UsageError("--on-conflict needs --unique");
  return key === undefined ? undefined : { key, onConflict: onConflict ?? "join" };
}

function debounceOf(invocation: Invocation): RunSpec["debounce"] {
  const key = invocation.text("debounce");
  const waitMs = wholeMs(invocation.duration("debounce-wait"));
  const maxWaitMs = wholeMs(invocation.duration("debounce-max"));
  if (key === undefined) {
    if (waitMs !== undefined) throw new UsageError("--debounce-wait needs --debounce");
    if (maxWaitMs !== undefined) throw new UsageError("--debounce-max needs --debounce");
    return undefined;
  }
  if (waitMs === undefined) throw new UsageError("--debounce needs --debounce-wait");
  return { key, waitMs, ...defined({ maxWaitMs }) };
}

/** Each with a key of its own: a lost response must not send one twice. */
function signalsOf(texts: readonly string[], runner: Runner): Promise<StartSignal[]> {
  return Promise.all(
    Object.entries(pairsOf("--signal", texts)).map(async ([name, text]) => {
      const value = jsonOf("--signal", text);
      await assertGateValue(runner, name, value);
      return { name, value, key: systemRandom.uuid(systemClock.wall()) };
    }),
  );
}

/** KEY=VALUE, for options that may be given many times. */
export function pairsOf(option: string, texts: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const cut = text.indexOf("=");
      if (cut < 1) throw new UsageError(`${option} must be KEY=VALUE, not ${text}`);
      return [text.slice(0, cut), text.slice(cut + 1)];
    }),
  );
}

const wholeMs = (ms: number | undefined): number | undefined => (ms === undefined ? undefined : Math.round(ms));

function startAtOf(invocation: Invocation): number | undefined {
  const text = invocation.text("start-at");
  if (text === undefined) return undefined;
  const at = Date.parse(text);
  if (Number.isNaN(at)) throw new UsageError(`--start-at must be a time such as 2026-11-16T08:00Z, not ${text}`);
  return Math.max(0, at);
}
