import { defined } from "../../base/defined.ts";
import type { ForkedOperation, ForkPlan } from "../../operator/fork-plan.ts";
import { operatorOf, operatorOptions, outputOption, storeOptions, wholeOf, withApp } from "../app.ts";
import type { Command, Invocation } from "../command.ts";
import { brief, printJson, wantsJson } from "../output.ts";
import { inputOf } from "./runs.ts";

export const forkCommand: Command = {
  name: "fork",
  summary: "starts a new run from a point of an existing one",
  arguments: [{ name: "run", help: "run to fork; it stays unchanged" }],
  options: {
    at: { value: "POS", help: "keep the operations before this position (default: the first failed or open one)" },
    "dry-run": { help: "print the plan and change nothing" },
    repeat: { value: "POS,…", help: "effects that already happened and may happen again" },
    "keep-compensated": {
      value: "POS,…",
      help: "effects to keep although the source run compensated them or still may",
    },
    id: { value: "ID", help: "id of the new run (default: generated)" },
    input: {
      value: "JSON",
      help: "input of the new run (default: that of the source run); @FILE reads it from a file",
    },
    ...operatorOptions,
    ...storeOptions,
    ...outputOption,
  },
  run: (invocation) => {
    const at = wholeOf("--at", invocation.text("at"));
    const repeat = positionsOf(invocation, "repeat");
    const keepCompensated = positionsOf(invocation, "keep-compensated");
    const id = invocation.text("id");
    const input = inputOf(invocation.text("input"));
    const audit = invocation.given("dry-run") ? undefined : operatorOf(invocation);
    return withApp(invocation, async ({ app }) => {
      const run = invocation.arguments.run!;
      const plan = await app.forkPlan(run, at);
      if (!wantsJson(invocation)) for (const line of linesOf(invocation, plan)) invocation.screen.line(line);
      if (audit === undefined) {
        if (wantsJson(invocation)) printJson(invocation, plan);
        return 0;
      }
      const handle = await app.fork(run, {
        ...audit,
        at: plan.at,
        repeat,
        keepCompensated,
        ...defined({ id, input }),
      });
      if (wantsJson(invocation)) printJson(invocation, { id: handle.id, plan });
      else invocation.screen.line(`started ${handle.id}`);
      return 0;
    });
  },
};

function positionsOf(invocation: Invocation, option: string): number[] {
  return (invocation.text(option) ?? "").split(",").flatMap((text) => wholeOf(`--${option}`, text || undefined) ?? []);
}

function linesOf(invocation: Invocation, plan: ForkPlan): string[] {
  const { screen } = invocation;
  const list = (title: string, operations: readonly ForkedOperation[]): string[] =>
    operations.length === 0 ? [] : [title, ...operations.map(({ pos, what, name }) => `  ${pos}  ${what} ${name}`)];
  const happened = plan.alreadyHappened.map(
    ({ pos, name, args, repeatable }) =>
      `  ${pos}  ${name} ${brief(args)}${repeatable ? "" : screen.bad("  would happen again: name it with --repeat")}`,
  );
  const compensated = plan.compensated.map(
    ({ pos, name, obligation }) =>
      `  ${pos}  ${name} ${obligation}${screen.bad("  fork before it, or name it with --keep-compensated")}`,
  );
  return [
    ...list(`kept, before position ${plan.at}`, plan.kept),
    ...list("runs again", plan.rerun),
    ...(happened.length === 0 ? [] : ["already happened", ...happened]),
    ...(compensated.length === 0 ? [] : ["kept although the source run compensated it or still may", ...compensated]),
    ...list("not compensated if the new run fails, because the source run is responsible", plan.notCompensated),
  ];
}
