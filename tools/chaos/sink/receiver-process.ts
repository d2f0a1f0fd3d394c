// The receiver of a fan-out, in a process that no fault ends: node receiver-process.ts LEDGER. Its ledger is a file, and
// an event is in it before its sender gets an answer.
import { appendFileSync } from "node:fs";
import { type LedgerEntry, noAnswer, Receiver } from "../../../bench/events/receiver.ts";
import type { ReceiverCommand, ReceiverMessage, SinkEntry, Trouble } from "./receiver-messages.ts";

const [file = ""] = process.argv.slice(2);
const say = (message: ReceiverMessage): void => void process.send?.(message);
const receiver = new Receiver();
let port = 0;
let trouble: Trouble = "none";
let ended = Promise.withResolvers<void>();
/** The next request is held before it is entered, or before it is answered. */
let armed: { readonly hold: number; readonly stage: "before" | "after" } | undefined;
/** Events whose sender cannot know that they arrived. */
let isUnanswered = false;
let highest = -1n;
const held = new Map<number, () => void>();

const holdHere = (worker: string): Promise<void> => {
  const { hold } = armed!;
  armed = undefined;
  say({ say: "held", hold, worker });
  return new Promise((resolve) => held.set(hold, resolve));
};

receiver.respond = async (worker) => {
  if (trouble === "hole") {
    say({ say: "troubled", trouble });
    await ended.promise;
    return noAnswer;
  }
  if (trouble === "errors") {
    say({ say: "troubled", trouble });
    return 500;
  }
  if (armed?.stage !== "before") return 204;
  await holdHere(worker);
  isUnanswered = true; // entered in this turn
  return 204;
};

receiver.entered = async (entries: readonly LedgerEntry[]) => {
  const [first] = entries;
  if (first === undefined) return 204;
  const isHeld = armed?.stage === "after";
  const unanswered = isUnanswered || isHeld || trouble === "lost";
  isUnanswered = false;
  const lines = entries.map(({ token, ...entry }) => {
    return JSON.stringify({
      ...entry,
      worker: entry.worker ?? "",
      token: String(token),
      unanswered,
    } satisfies SinkEntry);
  });
  appendFileSync(file, `${lines.join("\n")}\n`);
  if (first.token > highest) {
    highest = first.token;
    say({ say: "term", token: String(highest), worker: first.worker ?? "" });
  }
  if (trouble === "lost") {
    say({ say: "troubled", trouble });
    return noAnswer;
  }
  if (isHeld) await holdHere(first.worker ?? "");
  return 204;
};

process.on("message", async (command: ReceiverCommand) => {
  if ("stage" in command) armed = command;
  else if ("release" in command) {
    if (armed?.hold === command.release) armed = undefined;
    held.get(command.release)?.();
    held.delete(command.release);
  } else {
    const before = trouble;
    trouble = command.trouble;
    ended.resolve();
    ended = Promise.withResolvers();
    if (trouble === "down") receiver.close();
    else if (before === "down") await receiver.listen(port);
    say({ say: "changed" });
  }
});
process.on("disconnect", () => process.exit()); // the parent has ended

const url = await receiver.listen();
port = Number(new URL(url).port);
say({ say: "listens", url });
