import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { Tape } from "../../src/host/tape.ts";
import { createRunner, workflow } from "../../src/sdk/workflow.ts";
import { program, temporaryFolder } from "../cli/stage.ts";
import { testCodec } from "./codec.ts";

it("commands show payloads with the configured codec, and its key's id without it", async () => {
  const folder = await temporaryFolder();
  await mkdir(join(folder, "app"));
  const store = `sqlite:${join(folder, "tape.db")}`;
  const greet = workflow("greet", (tape, name: string) => tape.step("write", () => `dear ${name}`));
  {
    await using app = await Tape.open({ store, runner: createRunner({ workflows: [greet] }), codec: testCodec() });
    await (await app.start(greet, "ada", { id: "r-1" })).result();
  }
  const source = JSON.stringify(new URL("./codec.ts", import.meta.url).href);
  await writeFile(join(folder, "app/codec.ts"), `export { testCodec as codec } from ${source};\n`);
  await writeFile(join(folder, "app/wrong.ts"), "export const codec = () => ({ encode: 1 });\n");
  const yaml = (file: string) =>
    `agent: { codec_factory: ./app/${file}.ts#codec }\ntape: { store: { url: "${store}" } }\n`;
  await writeFile(join(folder, "with.yaml"), yaml("codec"));
  await writeFile(join(folder, "wrong.yaml"), yaml("wrong"));
  const inspect = (...args: string[]) => program("inspect", "r-1", "-o", "json", ...args);

  const plain = await inspect("--store", store);
  expect(plain.code).toBe(0);
  expect(plain.stdout).toContain("k1");
  expect(plain.stdout).not.toContain("dear ada");

  const shown = await inspect("--config", join(folder, "with.yaml"));
  expect(shown.stdout).toContain("dear ada");
  expect((await inspect("--config", join(folder, "wrong.yaml"))).stderr).toContain("TAPE_BAD_MODULE");
});
