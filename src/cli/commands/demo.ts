import type { Command } from "../command.ts";
import { agentDemo } from "../demo/agent/demo.ts";
import { crashResumeDemo } from "../demo/crash-resume.ts";
import { reactorsDemo } from "../demo/reactors.ts";
import { unknownDemo } from "../demo/unknown.ts";
import { zombieDemo } from "../demo/zombie.ts";

/** Demos with real processes; the fake world keeps a ledger of its own. */
export const demos: readonly Command[] = [
  {
    name: "demo agent",
    summary: "an agent of the Vercel AI SDK is killed in mid-sentence and after the wire; its page continues",
    options: { stay: { help: "keep the page open at the end, until Ctrl-C" } },
    run: (invocation) => agentDemo(invocation.screen, { stay: invocation.given("stay") }),
  },
  {
    name: "demo crash-resume",
    summary: "a worker dies after the payment, before recording it: the next one does not pay again",
    run: ({ screen }) => crashResumeDemo(screen),
  },
  {
    name: "demo reactors",
    summary: "the five reactors finish a trip whose workers keep dying",
    run: ({ screen }) => reactorsDemo(screen),
  },
  {
    name: "demo unknown",
    summary: "the bank's response is lost: the payment is observed, not repeated",
    run: ({ screen }) => unknownDemo(screen),
  },
  {
    name: "demo zombie",
    summary: "a paused owner resumes and cannot write",
    options: { unfenced: { help: "the same without the fence: the money moves twice" } },
    run: (invocation) => zombieDemo(invocation.screen, { unfenced: invocation.given("unfenced") }),
  },
];
