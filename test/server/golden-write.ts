import { writeFileSync } from "node:fs";
import { routes } from "../../src/protocol/contract.ts";
import { exchanged, goldenFile } from "./golden.ts";

// Writes every fixture anew. Look at the difference before you commit it: clients in the field read these bytes.
for (const { name } of routes) writeFileSync(goldenFile(name), await exchanged(name));
