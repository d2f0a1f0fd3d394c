import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { validate } from "./saver.ts";

const folder = mkdtempSync(join(tmpdir(), "tape-outside-"));
validate(
  "TapeSaver on SQLite",
  async () => `sqlite:${join(folder, "tape.db")}`,
  async () => rmSync(folder, { recursive: true }),
);
