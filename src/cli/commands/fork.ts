import type { ForkedOperation, ForkPlan } from "../../operator/fork-plan.ts";
import { operatorOf, operatorOptions, outputOption, storeOptions, wholeOf, withApp } from "../app.ts";
import type { Command, Invocation } from "../command.ts";
import { brief, printJson, wantsJson } from "../output.ts";

export const forkCommand: Command = {
  name: "fork",
  summary: "starts a new run from a point of another: shows what is kept, what runs again, what has already happened",
  arguments: [{ name: "run", help: "the run to go on from; it is left alone" }],
  options: {
    at: { value: "POS", help: "what was done before this position is kept; default: up to what failed or is open" },
    plan: { help: "shows what it would do, and does nothing" },
    again: { value: "POS,…", help: "acts that have happened and may happen a second time" },
    "keep-compensated": {
      value: "POS,…",
      help: "effects that were undone, or that the other run may still undo, and that are kept all the same",
    },
    id: { value: "ID", help: "the new run's id; default: a fresh one" },
    ...operatorOptions,
    ...storeOptions,
    ...outputOption,
  },
  run: (invocation) => {
    const at = wholeOf("--at", invocation.text("at"));
    const again = positionsOf(invocation, "again");
    const keepCompensated = positionsOf(invocation, "keep-compensated");
    const id = invocation.text("id");
    const audit = invocation.given("plan") ? undefined : operatorOf(invocation);
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
        again,
        keepCompensated,
        ...(id !== undefined && { id }),
      });
      if (wantsJson(invocation)) printJson(invocation, { id: handle.id, plan });
      else invocation.screen.line(`started ${handle.id}`);
      return 0;
    });
  },
};

function positionsOf(invocation: Invocation, option: string): number[] {
  return (invocation.text(option) ?? "").split(",").flatMap((word) => wholeOf(`--${option}`, word || undefined) ?? []);
}

function linesOf(invocation: Invocation, plan: ForkPlan): string[] {
  const { screen } = invocation;
  const list = (title: string, some: readonly ForkedOperation[]): string[] =>
    some.length === 0 ? [] : [title, ...some.map(({ pos, what, name }) => `  ${pos}  ${what} ${name}`)];
  const happened = plan.happened.map(
    ({ pos, name, args, repeatable }) =>
      `  ${pos}  ${name} ${brief(args)}${repeatable ? "" : screen.bad("  would happen a second time: name it with --again")}`,
  );
  const undone = plan.undone.map(
    ({ pos, name, obligation }) =>
      `  ${pos}  ${name} ${obligation}${screen.bad("  fork before it, or name it with --keep-compensated")}`,
  );
  return [
    ...list(`kept, before position ${plan.at}`, plan.kept),
    ...list("runs again", plan.again),
    ...(happened.length === 0 ? [] : ["has already happened in the world", ...happened]),
    ...(undone.length === 0
      ? []
      : ["kept although it was undone, or may still be by the run it comes from", ...undone]),
    ...list("not undone if the new run fails: that stays with the run it comes from", plan.notUndone),
  ];
}
