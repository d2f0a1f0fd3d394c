// Opens the file, waits for a signal, writes one value and ends. Nothing but the write keeps it alive.
import { openSqlite } from "../../../src/store/sqlite/open.ts";

const store = await openSqlite({ file: process.argv[2]! });
const alive = setInterval(() => {}, 1_000);
const signalled = new Promise<void>((resolve) => process.once("SIGUSR2", () => resolve()));
console.log("opened");
await signalled;
clearInterval(alive);
const written = store.intake.putValue("acme", "k", 1, "must_create");
console.log("writing");
console.log(`written ${(await written).version}`);
await store.close();
