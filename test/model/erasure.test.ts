import { describe, expect, it } from "vitest";
import { z } from "zod";
import { decode, encode, isErased } from "../../src/base/codec.ts";
import { erasedBody, erasedData, erasedResult, labelFields, wordFields } from "../../src/model/erasure.ts";
import { payloadFields } from "../../src/model/payloads.ts";
import { encodeBody } from "../../src/model/projection.ts";
import { type RecordKind, recordKinds, recordSchemas } from "../../src/model/records.ts";
import { samples } from "../../testkit/conformance/misplaced.ts";

/** Texts that stay, by the last name of their path: names, keys, hashes and words of a closed list, and the audit's. */
const kept: ReadonlySet<string> = new Set([
  ...["id", "workflow", "version", "name", "connector", "purpose", "schedule", "lane", "awaited", "waitingFor"],
  ...["key", "businessKey", "binds", "callback", "inputHash", "argsHash", "sha256", "archive", "policy", "model"],
  ...["tenant", "token", "owner", "label", "reactor", "nextReactor", "build", "from", "startedBy", "forkedFrom"],
  ...["by", "action", "auditReason", "starters", "names", "roles", "run", "unset", "published", "status", "kind"],
  ...["queue", "refused", "unit"],
]);

/** Reasons of a closed list, of Tape's own words, or of an operator, whose audit stays. */
const keptReasons: ReadonlySet<string> = new Set([
  ...["effect.settled", "effect.received", "effect.outcome", "obligation.settled", "store.restored", "operator.action"],
  "run.created fork",
]);

function textPaths(schema: z.ZodType, path: string[] = []): string[][] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable)
    return textPaths(schema.unwrap() as z.ZodType, path);
  if (schema instanceof z.ZodString) return [path];
  if (schema instanceof z.ZodArray) return textPaths(schema.element as z.ZodType, path);
  if (schema instanceof z.ZodRecord) return textPaths(schema.valueType as z.ZodType, path);
  if (!(schema instanceof z.ZodObject)) return [];
  return Object.entries(schema.shape).flatMap(([field, of]) => textPaths(of as z.ZodType, [...path, field]));
}

const erasedPaths = (kind: RecordKind): string[] =>
  [payloadFields, wordFields, labelFields].flatMap((table) => table[kind] ?? []);

describe("the tables of erasure", () => {
  it("erase every text of a record, or say that it stays", () => {
    const open = recordKinds.flatMap((kind) =>
      textPaths(recordSchemas[kind]).flatMap((path) => {
        const last = path.at(-1)!;
        if (erasedPaths(kind).includes(path.join(".")) || kept.has(last)) return [];
        return last === "reason" && keptReasons.has([kind, ...path.slice(0, -1)].join(" "))
          ? []
          : [`${kind} ${path.join(".")}`];
      }),
    );
    expect(open).toEqual([]);
  });

  it("erasing a record twice changes nothing, and what is left fits its schema", () => {
    for (const kind of recordKinds) {
      const body = encodeBody(samples[kind]);
      const once = erasedBody(kind, body);
      expect(erasedBody(kind, once)).toBe(once);
      const { v: _v, ...data } = decode(once) as Record<string, unknown>;
      expect(recordSchemas[kind].safeParse(data).success, kind).toBe(true);
    }
  });

  it("erases what a fork has kept, nested fields, labels and an input of undefined", () => {
    const kept = { records: [{ kind: "step.done", data: { pos: 0, name: "s", value: "mail" } }] };
    const [first] = erasedData("fork.kept", kept).records as { data: { name: string; value: unknown } }[];
    expect([first?.data.name, isErased(first?.data.value)]).toEqual(["s", true]);
    const stuck = erasedData("run.stuck", { reason: "mail", detail: { last: "mail", code: "TAPE_TIMEOUT" } });
    expect(JSON.stringify(stuck)).toBe('{"reason":"[erased]","detail":{"last":"[erased]","code":"TAPE_TIMEOUT"}}');
    const noted = erasedData("term.ended", { reason: "released", term: { renewals: 1, progressNote: "mail" } });
    expect(noted).toEqual({ reason: "released", term: { renewals: 1, progressNote: "[erased]" } });
    expect(erasedData("labels.set", { pos: 1, set: { a: "mail" }, unset: ["b"] })).toEqual({
      ...{ pos: 1, set: { a: "[erased]" }, unset: ["b"] },
    });
    expect(isErased(erasedData("run.created", { id: "r", input: undefined }).input)).toBe(true);
    expect(erasedResult(encode({ error: new Error("mail") }))).not.toContain("mail");
  });
});
