import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { guideNames, guidesFolder, parseGuide, readGuide } from "./guide.ts";
import { shows, showsAmong } from "./match.ts";
import { oldestIn } from "./nodes.ts";

describe("the guides", () => {
  it.each(guideNames())("%s has files, commands and what they print", (name) => {
    const { steps } = readGuide(name);
    const commands = steps.filter((step) => step.kind === "command");
    expect(steps.some(({ kind }) => kind === "file")).toBe(true);
    expect(commands.some(({ commands: text }) => text.includes("npm install durable-tape"))).toBe(true);
    expect(commands.filter((step) => step.shows !== undefined && step.shows.trim() !== "…").length).toBeGreaterThan(0);
  });

  it("the index lists each of them", () => {
    const index = readFileSync(join(guidesFolder, "index.md"), "utf8");
    const listed = [...index.matchAll(/\]\(([\w-]+)\.md\)/g)].map(([, name]) => name!);
    expect(listed.sort()).toEqual(guideNames());
  });
});

describe("a guide is read literally", () => {
  const fence = "```";

  it("files, commands by terminal, and their output", () => {
    const page = [
      `${fence}ts\n// file: src/a.ts\nexport {};\n${fence}`,
      `${fence}sh\nnode src/a.ts\n${fence}\n\n${fence}text\nhello\n${fence}`,
      `${fence}sh worker\ncurl localhost:3000\n${fence}`,
    ].join("\n\n");
    const { steps, ports, usesPostgres } = parseGuide("a", page);
    expect(steps).toEqual([
      { kind: "file", line: 1, path: "src/a.ts", text: "// file: src/a.ts\nexport {};\n" },
      { kind: "command", line: 6, terminal: "main", commands: "node src/a.ts\n", shows: "hello\n" },
      { kind: "command", line: 14, terminal: "worker", commands: "curl localhost:3000\n" },
    ]);
    expect({ ports, usesPostgres }).toEqual({ ports: [3000], usesPostgres: false });
  });

  it.each([
    ["a file without a name", `${fence}ts\nexport {};\n${fence}`],
    ["a file outside the folder", `${fence}ts\n// file: ../a.ts\n${fence}`],
    ["a language that is not executed", `${fence}json\n{}\n${fence}`],
    ["output without commands", `${fence}text\nhello\n${fence}`],
  ])("%s is refused", (_, page) => {
    expect(() => parseGuide("a", page)).toThrow(/^a\.md:1: /);
  });
});

describe("what a terminal shows", () => {
  it("is compared line by line, with … for what varies", () => {
    expect(shows("a 1\nb\nc\n", "a …\n…\nc\n")).toBe(true);
    expect(shows("a 1\nb\nc\n", "a …\nc\n")).toBe(false);
    expect(shows("a\n", "a\nb\n")).toBe(false);
    expect(shows("paid twice\n", "paid once\n")).toBe(false);
  });

  it("may have other lines around if its program keeps running", () => {
    expect(showsAmong("x\nready\ny\ndone\n", "ready\ndone\n")).toBe(true);
    expect(showsAmong("done\nready\n", "ready\ndone\n")).toBe(false);
  });
});

it("the oldest supported Node is the smallest version of engines", () => {
  expect(oldestIn("^24.14.1 || >=25.8.2")).toBe("24.14.1");
  expect(oldestIn(">=25.8.2 || ^22.22.2 || ^24.14.1")).toBe("22.22.2");
});
