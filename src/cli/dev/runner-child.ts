import { main } from "../reactors/main.ts";

/** The user's runner and the five reactors, in a process of its own that goes when dev goes, however that went. */
process.on("disconnect", () => void process.kill(process.pid, "SIGTERM"));
if (!process.connected) process.exit(1); // it went while this one was loading
process.exit(await main(process.argv.slice(2)));
