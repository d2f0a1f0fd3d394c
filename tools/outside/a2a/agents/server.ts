// One agent as a program: `node server.ts KIND STORE [PORT]`. Its first line is its address.
import { createRunner, Tape } from "durable-tape";
import { scripted } from "./durable.ts";
import { handlerOf, type Kind, serve } from "./serve.ts";

const [kind, store, port] = process.argv.slice(2) as [Kind, string, string?];
const app = await Tape.open({ store, runner: createRunner({ workflows: [scripted] }), log: "error" });
console.info = () => {}; // the SDK writes a line for each notification
const { url } = await serve((card) => handlerOf(kind, app, card), Number(port ?? 0));
console.log(url);
