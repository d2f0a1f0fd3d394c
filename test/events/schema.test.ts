import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type EventContext, eventOf, payloads, restoredEvent, restoredKind, traceOf } from "../../src/events/event.ts";
import { eventJsonSchema, eventKinds } from "../../src/events/schema.ts";
import { type RecordKind, recordKinds } from "../../src/model/records.ts";
import type { FeedRecord, Subject } from "../../src/store/contract/store.ts";
import { samples } from "../../testkit/conformance/misplaced.ts";

const run = { id: "r", workflow: "order", version: "v2", labels: { region: "eu" }, root: "r", parent: null };
const subject: Subject = { journal: 17, kind: "item", run, item: { pos: 3, sub: 0, name: "pay" } };
const contextOf = (payload: EventContext["payload"]): EventContext => ({
  ...{ source: "/tape/store/acme", tenant: "acme", storeEpoch: 1, token: 3n, payload },
});

const recordOf = (kind: RecordKind, data: unknown = samples[kind]): FeedRecord =>
  ({ journal: 17, seq: 5, token: 2n, at: 1_794_848_992_501, kind, data, cursor: "c" }) as unknown as FeedRecord;
const eventFor = (kind: string, payload: EventContext["payload"], data?: unknown) =>
  kind === restoredKind
    ? restoredEvent(contextOf(payload), 1_794_848_992_501)
    : eventOf(recordOf(kind as RecordKind, data), subject, traceOf("acme", "r"), contextOf(payload));

type Json = Parameters<typeof z.fromJSONSchema>[0];
const validators = new Map<string, z.ZodType>();
/** As a receiver does: from the text of the schema, and of the event. */
function judge(kind: string, data: unknown) {
  const known = validators.get(kind);
  const validator = known ?? z.fromJSONSchema(JSON.parse(JSON.stringify(eventJsonSchema(kind))) as Json);
  validators.set(kind, validator);
  return validator.safeParse(JSON.parse(JSON.stringify(data)));
}

describe("schemas of events", () => {
  it.each(eventKinds)("%s: an event has its schema, by every payload", (kind) => {
    const { $id: uri } = eventJsonSchema(kind);
    for (const payload of payloads) {
      const event = eventFor(kind, payload);
      expect(event.dataschema).toBe(uri);
      expect(judge(kind, event.data).error, payload).toBeUndefined();
    }
  });

  it("golden events keep theirs: a change that a receiver would notice needs another version", async () => {
    const lines = eventKinds.map((kind) => JSON.stringify(eventFor(kind, "facts")));
    await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("golden/events.jsonl");
  });

  it("values beyond JSON come in the envelope of the codec", () => {
    const { data } = eventFor("step.done", "values", { ...(samples["step.done"] as object), value: new Date(5) });
    expect(data.record?.data).toHaveProperty("$codec");
    expect(judge("step.done", data).success).toBe(true);
  });

  it("a later version may add fields, at any depth", () => {
    const { data } = JSON.parse(JSON.stringify(eventFor("run.ended", "facts"))) as { data: Record<string, object> };
    const more = { colour: "red" };
    const grown = { ...data, ...more, run: { ...data.run, ...more }, record: { ...data.record, ...more } };
    expect(judge("run.ended", grown).success).toBe(true);
  });

  it.each(recordKinds.filter((kind) => kind !== restoredKind))("%s: refuses what is no such event", (kind) => {
    const { data } = eventFor(kind, "facts");
    const { record } = data;
    const wrong = [
      ...[
        { ...data, record: undefined },
        { ...data, record: { ...record, kind: "other" } },
      ],
      ...[
        { ...data, record: { ...record, seq: 0 } },
        { ...data, run: { ...run, id: 7 } },
      ],
      ...[
        { ...data, record: { ...record, data: "text" } },
        { ...data, record: { ...record, token: "x" } },
      ],
    ];
    for (const one of wrong) expect(judge(kind, one).success, JSON.stringify(one)).toBe(false);
  });
});
