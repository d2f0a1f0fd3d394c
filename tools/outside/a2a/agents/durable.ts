import { type TapeContext, workflow } from "durable-tape";
import { type TaskInput, type TaskOutput, TaskRejected, taskMessage, type WireMessage } from "durable-tape/a2a";
import { scenarioOf } from "./scenarios.ts";

/** The agent as a workflow: each message of the task is a scenario, until one ends the task. */
export const scripted = workflow("scripted", async (tape, task: TaskInput): Promise<TaskOutput> => {
  let message: WireMessage = task.message;
  for (;;) {
    const { ask, output } = await played(tape, message);
    if (ask === undefined) return output ?? {};
    const answer = await tape.gate(taskMessage, { payload: ask });
    if (answer.status !== "received") throw new Error("no answer");
    message = answer.value.message;
  }
});

async function played(tape: TapeContext, message: WireMessage): Promise<{ ask?: string; output?: TaskOutput }> {
  const { words, waitMs, ask, reject, fail, output } = scenarioOf(message);
  if (words !== undefined) {
    await tape.decide("words", async (decision) => {
      for (const word of words) await decision.emit(word);
      return words.join("");
    });
  }
  if (waitMs !== undefined) await tape.sleep(waitMs);
  if (reject !== undefined) throw new TaskRejected(reject);
  if (fail !== undefined) throw new Error(fail);
  return { ...(ask !== undefined && { ask }), ...(output !== undefined && { output }) };
}
