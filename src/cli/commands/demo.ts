import type { Command } from "../command.ts";
import { crashResumeDemo } from "../demo/crash-resume.ts";
import { reactorsDemo } from "../demo/reactors.ts";
import { unknownDemo } from "../demo/unknown.ts";
import { zombieDemo } from "../demo/zombie.ts";

/** Stories with real processes and a ledger of the world beside. */
export const demos: readonly Command[] = [
  {
    name: "demo crash-resume",
    summary: "a process dies after a wire, before its record: the next one does not wire again",
    run: ({ screen }) => crashResumeDemo(screen),
  },
  {
    name: "demo reactors",
    summary: "a trip whose workers die: outbox, reconciler, recovery, timers and compensation bring it to its end",
    run: ({ screen }) => reactorsDemo(screen),
  },
  {
    name: "demo unknown",
    summary: "the bank's answer is lost: nobody asks it again, somebody looks",
    run: ({ screen }) => unknownDemo(screen),
  },
  {
    name: "demo zombie",
    summary: "two processes, one lease: a paused owner wakes up and cannot write",
    options: { unfenced: { help: "the same without the fence, for comparison: the money moves twice" } },
    run: (invocation) => zombieDemo(invocation.screen, { unfenced: invocation.given("unfenced") }),
  },
];
