// A server replica: `store port log`, until it is killed.
import { appendFileSync } from "node:fs";
import { systemClock } from "../../src/base/clock.ts";
import { jsonLog } from "../../src/base/log.ts";
import { serve } from "../../src/host/serve.ts";
import { persistently } from "./store-calls.ts";

const [store = "", port = "0", file = ""] = process.argv.slice(2);
const log = jsonLog((line) => appendFileSync(file, line), systemClock.wall, "warn");
const { url } = await persistently(() => serve({ store, port: Number(port), log }));
process.send!(url);
process.on("disconnect", () => process.exit()); // the parent has ended
