import type { Command } from "../command.ts";
import { crashResumeDemo } from "../demo/crash-resume.ts";
import { zombieDemo } from "../demo/zombie.ts";

/** Stories with real processes and a ledger of the world beside. */
export const demos: readonly Command[] = [
  {
    name: "demo crash-resume",
    summary: "a process dies after a wire, before its record: the next one does not wire again",
    run: ({ screen }) => crashResumeDemo(screen),
  },
  {
    name: "demo zombie",
    summary: "two processes, one lease: a paused owner wakes up and cannot write",
    run: ({ screen }) => zombieDemo(screen),
  },
];
