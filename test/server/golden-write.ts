import { writeFileSync } from "node:fs";
import { routes } from "../../src/protocol/contract.ts";
import { exchanged, goldenFile } from "./golden.ts";

// Rewrites every fixture. Review the difference before you commit it: deployed clients read these bytes.
for (const { name } of routes) writeFileSync(goldenFile(name), await exchanged(name));
