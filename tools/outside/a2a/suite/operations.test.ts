import { comparedOn } from "./compared.ts";

comparedOn(
  "SQLite",
  async () => "memory:",
  async () => {},
);
