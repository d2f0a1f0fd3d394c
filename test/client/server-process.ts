import { serve } from "../../src/host/serve.ts";

/** A server in a process of its own: `store port`. Says its address to whoever started it. */
const [store = "", port = "0"] = process.argv.slice(2);
const serving = await serve({ store, port: Number(port) });
process.once("SIGTERM", () => void serving.stop());
process.send?.(serving.url);
process.disconnect?.();
