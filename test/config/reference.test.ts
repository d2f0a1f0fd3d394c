import { expect, it } from "vitest";
import { parseReference, referencePattern } from "../../src/config/reference.ts";

it.each([
  ["./app/agent.ts#buildRunner", { files: ["./app/agent.ts"], exports: ["buildRunner"] }],
  ["C:\\app\\agent.ts#build", { files: ["C:\\app\\agent.ts"], exports: ["build"] }],
  ["./a#b.ts#c", { files: ["./a#b.ts"], exports: ["c"] }],
  [
    "app.agent:build_runner",
    {
      files: ["./app/agent.ts", "./app/agent.mts", "./app/agent.js", "./app/agent.mjs"],
      exports: ["build_runner", "buildRunner"],
    },
  ],
  ["agent:build", { files: ["./agent.ts", "./agent.mts", "./agent.js", "./agent.mjs"], exports: ["build"] }],
])("%s names a function", (text, expected) => {
  expect(parseReference(text)).toEqual(expected);
  expect(referencePattern.test(text)).toBe(true);
});

it.each([
  "",
  "app.agent",
  "./app/agent.ts",
  "#a",
  "a#",
  ":a",
  "a:",
  "a..b:c",
  "../a:b",
  "a/b:c",
  "a:b:c",
  "a: b",
  "http://x:80",
])("%j names none", (text) => {
  expect(parseReference(text)).toBeUndefined();
  expect(referencePattern.test(text)).toBe(false);
});
