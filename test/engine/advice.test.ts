import { expect, it } from "vitest";
import { effectCommands } from "../../src/cli/commands/effects.ts";
import { unresolvedEffectError } from "../../src/engine/core/stuck-records.ts";
import { Tape } from "../../src/host/tape.ts";
import { errorTable } from "../../src/model/errors.ts";

const commands = new Map(effectCommands.map((command) => [command.name, command]));
const resolutionsOf = (name: string): readonly string[] =>
  (commands.get(name)!.options as unknown as { as: { value: string } }).as.value.split("|");

it.each([
  ["an effect", false, "resolve effect"],
  ["a compensation", true, "resolve obligation"],
])("the command, method and resolutions that a STUCK run suggests for %s exist", (_, isCompensation, command) => {
  const ref = { run: 2, pos: 3, sub: isCompensation ? 1 : 0, name: "wire", reason: "exhausted" };
  const { message } = unresolvedEffectError({ ...ref, error: new Error("no answer") }, isCompensation);
  expect(message).toContain("exhausted; the last attempt failed with: no answer");
  const [, advice] = message.split("resolve it as ");
  const [, named] = /durable-tape ([a-z]+ [a-z]+) </.exec(advice!)!;
  expect(named).toBe(command);
  const resolutions = advice!
    .split("(")[0]!
    .match(/\b(confirmed|failed|retry|observe|compensate|confirmed|pending|compensated)\b/g)!;
  expect(resolutions.length).toBeGreaterThan(1);
  for (const resolution of resolutions) expect(resolutionsOf(command)).toContain(resolution);
  for (const [method] of advice!.matchAll(/(?<=app\.)\w+/g)) expect(method in Tape.prototype).toBe(true);
});

it("the resolutions that the table of errors suggests exist", () => {
  const advice = Object.values(errorTable).flatMap(({ next }) => [...next.matchAll(/resolve as ([^;.]+)/g)]);
  expect(advice.length).toBeGreaterThan(0);
  for (const [, list] of advice) {
    for (const resolution of list!.split(/, | or /)) expect(resolutionsOf("resolve effect")).toContain(resolution);
  }
});
