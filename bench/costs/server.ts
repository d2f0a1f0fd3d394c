import { serve } from "../../src/host/serve.ts";

/** A server in its own process, on a port that its successor can use again. */
const [store = "", port = "0"] = process.argv.slice(2);
const serving = await serve({ store, port: Number(port) });
process.send?.(serving.url);
process.once("disconnect", () => process.exit()); // the parent has ended
