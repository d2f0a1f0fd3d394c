import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, it } from "vitest";
import { executed, names } from "./snippets.ts";

const page = readFileSync(join(resolve(import.meta.dirname, "../.."), "docs/seeds.md"), "utf8");
const rows = [...page.matchAll(/^\| `([^`]+)` \| (.+?) \| (.+?) \|(?: .*)? \|$/gm)].map(([, name, there, here]) => ({
  name: name!,
  there: there!,
  here: here!,
}));

it("has one row for each snippet, and none for others", () => {
  expect(rows.map(({ name }) => name).toSorted()).toEqual(names.toSorted());
});

it("says of each row how it is written here", () => {
  expect(rows.filter(({ here }) => !/^(as written$|written as )/.test(here))).toEqual([]);
});

it("calls those as written that are executed byte for byte, and no others", () => {
  const asWritten = rows.filter(({ here }) => here === "as written").map(({ name }) => name);
  expect(asWritten.toSorted()).toEqual(executed.toSorted());
});

it("is true of each snippet that has another form here: a title of these tests begins with its name", () => {
  const files = readdirSync(import.meta.dirname).filter((name) => name.endsWith(".test.ts"));
  const titles = files.flatMap((name) =>
    [...readFileSync(join(import.meta.dirname, name), "utf8").matchAll(/\bit\("([^":]+):/g)].map(([, title]) => title!),
  );
  const tried = new Set(titles.flatMap((title) => title.split(", ")));
  expect(names.filter((name) => !executed.includes(name) && !tried.has(name))).toEqual([]);
});
