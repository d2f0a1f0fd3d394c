import { describe, expect, it } from "vitest";
import { readFiles, repositoryPaths, type SourceFile } from "./files.ts";
import { functionLengths, longFunctions, maxFunctionLines } from "./rules/function-length.ts";

const counted = /^(src|testkit|simulation|tools|dashboard\/src)\/.*\.tsx?$/;
const code = readFiles(repositoryPaths().filter((path) => counted.test(path)));
const at = (text: string): SourceFile => ({ path: "src/cli/a.ts", text });
const body = (lines: number): string => `{\n${"  work();\n".repeat(lines - 2)}}`;

describe("function length", () => {
  it("holds", { timeout: 180_000 }, () => expect(functionLengths(code)).toEqual([]));

  it("has at most 12 exceptions, each with a reason", () => {
    expect(Object.keys(longFunctions).length).toBeLessThanOrEqual(12);
    for (const reason of Object.values(longFunctions)) expect(reason).toMatch(/table|switch/);
  });

  it.each([
    ["function", `export function long() ${body(maxFunctionLines + 1)}`, "long"],
    ["arrow function", `export const long = () => ${body(maxFunctionLines + 1)};`, "long"],
    ["method", `class A { #long() ${body(maxFunctionLines + 1)} }`, "#long"],
    ["property", `export const a = { long: () => ${body(maxFunctionLines + 1)} };`, "long"],
    ["test case", `export const cases = ({ it }) => { it("long", () => ${body(maxFunctionLines + 1)}); };`, "long"],
  ])("refuses a long %s", (_kind, text, name) => {
    expect(functionLengths([at(text)], {})).toEqual([expect.stringContaining(`${name} has 71 lines`)]);
  });

  it("accepts a function of 70 lines, and a long list of short test cases", () => {
    const cases = Array.from({ length: 80 }, (_, k) => `  it("case ${k}", () => {});`).join("\n");
    const text = `export function fine() ${body(maxFunctionLines)}\nexport const cases = ({ it }) => {\n${cases}\n};`;
    expect(functionLengths([at(text)], {})).toEqual([]);
  });

  it("refuses an exception that is no longer needed", () => {
    const exceptions = { "src/cli/a.ts long": "a table" };
    expect(functionLengths([at(`export function long() ${body(71)}`)], exceptions)).toEqual([]);
    expect(functionLengths([at("export function long() {}")], exceptions)).toEqual([expect.stringContaining("remove")]);
  });
});
