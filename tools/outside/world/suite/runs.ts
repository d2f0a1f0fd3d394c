import type { Event, World } from "@workflow/world";

const utf8 = new TextEncoder();
/** A payload, as the framework serialises them. */
export const payload = (text: string): Uint8Array => utf8.encode(text);

let made = 0;
/** The id of a new run, with the time in it that the framework puts there. */
export function newRunId(): string {
  const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  const inDigits = (value: number, length: number): string =>
    Array.from({ length }, (_, k) => digits[Math.floor(value / 32 ** (length - 1 - k)) % 32]).join("");
  return `wrun_${inDigits(Date.now(), 10)}${inDigits(process.pid, 8)}${inDigits(++made, 8)}`;
}

const created = { deploymentId: "dpl", workflowName: "workflow//test//pay", input: payload("in") };

/** A run that is running. */
export async function startRun(world: World, id = newRunId()): Promise<string> {
  await world.events.create(id, { eventType: "run_created", specVersion: 5, eventData: created });
  await world.events.create(id, { eventType: "run_started", specVersion: 5 });
  return id;
}

export const runData = created;

export const stepCreated = (id: string) => ({
  eventType: "step_created" as const,
  correlationId: id,
  eventData: { stepName: "step//test//charge", input: payload(`input of ${id}`) },
});

/** A start that creates its step. */
export const lazyStart = (id: string, ownerMessageId = "msg") => ({
  eventType: "step_started" as const,
  correlationId: id,
  eventData: { stepName: "step//test//charge", input: payload(`input of ${id}`), ownerMessageId },
});

export const stepCompleted = (id: string, text = "out") => ({
  eventType: "step_completed" as const,
  correlationId: id,
  eventData: { result: payload(text) },
});

export const hookCreated = (id: string, token: string) => ({
  eventType: "hook_created" as const,
  correlationId: id,
  eventData: { token, metadata: payload("meta") },
});

export const runCompleted = { eventType: "run_completed" as const, eventData: { output: payload("done") } };

/** All events of a run, in pages. */
export async function allEvents(world: World, runId: string, limit = 7): Promise<Event[]> {
  const found: Event[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await world.events.list({ runId, pagination: { limit, ...(cursor !== undefined && { cursor }) } });
    found.push(...page.data);
    if (!page.hasMore) return found;
    cursor = page.cursor!;
  }
}

/** The names of the errors with which calls were refused; "" for one that was not. */
export const refusals = (results: readonly PromiseSettledResult<unknown>[]): string[] =>
  results.map((result) => (result.status === "fulfilled" ? "" : (result.reason as Error).name));
