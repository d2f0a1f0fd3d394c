import { expect, it } from "vitest";
import { effectCommands } from "../../src/cli/commands/effects.ts";
import { unresolvedEffectError } from "../../src/engine/drive/stuck-records.ts";
import { Tape } from "../../src/host/tape.ts";
import { errorTable } from "../../src/model/errors.ts";

const commands = new Map(effectCommands.map((command) => [command.name, command]));
const wordsOf = (name: string): readonly string[] =>
  (commands.get(name)!.options as unknown as { as: { value: string } }).as.value.split("|");

it.each([
  ["an act", false, "resolve effect"],
  ["what undoes an act", true, "resolve obligation"],
])("what a STUCK run advises for %s exists: command, method and words", (_, undoing, command) => {
  const place = { run: 2, pos: 3, sub: undoing ? 1 : 0, name: "wire", reason: "exhausted" };
  const { message } = unresolvedEffectError({ ...place, error: new Error("no answer") }, undoing);
  expect(message).toContain("exhausted; the last attempt failed with: no answer");
  const [, advice] = message.split("resolve it as ");
  const [, named] = /durable-tape ([a-z]+ [a-z]+) </.exec(advice!)!;
  expect(named).toBe(command);
  const words = advice!
    .split("(")[0]!
    .match(/\b(confirmed|failed|retry|observe|compensate|confirmed|pending|compensated)\b/g)!;
  expect(words.length).toBeGreaterThan(1);
  for (const word of words) expect(wordsOf(command)).toContain(word);
  for (const [method] of advice!.matchAll(/(?<=app\.)\w+/g)) expect(method in Tape.prototype).toBe(true);
});

it("so does what the table of errors advises for doubt", () => {
  const advice = Object.values(errorTable).flatMap(({ next }) => [...next.matchAll(/resolve as ([^;.]+)/g)]);
  expect(advice.length).toBeGreaterThan(0);
  for (const [, words] of advice) {
    for (const word of words!.split(/, | or /)) expect(wordsOf("resolve effect")).toContain(word);
  }
});
