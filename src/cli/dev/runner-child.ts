import { main } from "../reactors/main.ts";

/** The child process with the user's runner and the five reactors. It ends when dev ends, even if dev crashed. */
process.on("disconnect", () => void process.kill(process.pid, "SIGTERM"));
if (!process.connected) process.exit(1); // dev ended while this process was loading
process.exit(await main(process.argv.slice(2)));
