import { defined } from "../../base/defined.ts";
import { onConflicts } from "../../model/queue.ts";
import type { RunSpec } from "../../store/contract/store.ts";
import { choicesOf, wholeOf } from "../app.ts";
import { type Invocation, type Option, UsageError } from "../command.ts";

/** When a run starts, and in which queue. */
export const startOptions = {
  queue: { value: "NAME", help: "queue in which the run waits for a slot" },
  key: { value: "KEY", help: "key of the run in its queue" },
  priority: { value: "1-9", help: "priority in its queue; 1 is served first (default 5)" },
  delay: { value: "TIME", help: "start this much later, such as 10m" },
  "start-at": { value: "TIME", help: "start at this time, such as 2026-11-16T08:00Z" },
  expires: { value: "TIME", help: "cancel the run if it still waits in its queue after this time" },
  unique: { value: "KEY", help: "at most one live run of the workflow has this key" },
  "on-conflict": { value: onConflicts.join("|"), help: "with --unique: what to do if there is one (default: join)" },
} as const satisfies Record<string, Option>;

type StartFields = Pick<RunSpec, "queue" | "key" | "priority" | "delayMs" | "startAt" | "expiresMs" | "unique">;

export function startFieldsOf(invocation: Invocation): StartFields {
  const [queue, key, uniqueKey] = [invocation.text("queue"), invocation.text("key"), invocation.text("unique")];
  const priority = wholeOf("--priority", invocation.text("priority"));
  const [onConflict] = choicesOf("--on-conflict", invocation.text("on-conflict"), onConflicts) ?? [];
  if (onConflict !== undefined && uniqueKey === undefined) throw new UsageError("--on-conflict needs --unique");
  const unique = uniqueKey === undefined ? undefined : { key: uniqueKey, onConflict: onConflict ?? "join" };
  const [delayMs, expiresMs] = [wholeMs(invocation.duration("delay")), wholeMs(invocation.duration("expires"))];
  return defined({ queue, key, priority, delayMs, startAt: startAtOf(invocation), expiresMs, unique });
}

const wholeMs = (ms: number | undefined): number | undefined => (ms === undefined ? undefined : Math.round(ms));

function startAtOf(invocation: Invocation): number | undefined {
  const text = invocation.text("start-at");
  if (text === undefined) return undefined;
  const at = Date.parse(text);
  if (Number.isNaN(at)) throw new UsageError(`--start-at must be a time such as 2026-11-16T08:00Z, not ${text}`);
  return Math.max(0, at);
}
