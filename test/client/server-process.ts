import { serve } from "../../src/host/serve.ts";

/** A server in its own process: `store port`. Sends its address to its parent. */
const [store = "", port = "0"] = process.argv.slice(2);
const serving = await serve({ store, port: Number(port) });
process.once("SIGTERM", () => void serving.stop());
process.send?.(serving.url);
process.disconnect?.();
