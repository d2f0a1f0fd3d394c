import { serve } from "../src/host/serve.ts";

/** A server in its own process; sends its address to its parent. */
const [store = ""] = process.argv.slice(2);
const serving = await serve({ store, port: 0, limits: { ratePerSecond: 1e6, rateBurst: 1e6 } });
process.once("SIGTERM", () => void serving.stop());
process.send?.(serving.url);
process.disconnect?.();
