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
  run: (asked) => {
    const at = wholeOf("--at", asked.text("at"));
    const again = positionsOf(asked, "again");
    const keepCompensated = positionsOf(asked, "keep-compensated");
    const id = asked.text("id");
    const person = asked.given("plan") ? undefined : operatorOf(asked);
    return withApp(asked, async ({ app }) => {
      const run = asked.arguments.run!;
      const plan = await app.forkPlan(run, at);
      if (!wantsJson(asked)) for (const line of linesOf(asked, plan)) asked.screen.line(line);
      if (person === undefined) {
        if (wantsJson(asked)) printJson(asked, plan);
        return 0;
      }
      const handle = await app.fork(run, {
        ...person,
        at: plan.at,
        again,
        keepCompensated,
        ...(id !== undefined && { id }),
      });
      if (wantsJson(asked)) printJson(asked, { id: handle.id, plan });
      else asked.screen.line(`started ${handle.id}`);
      return 0;
    });
  },
};

function positionsOf(asked: Invocation, option: string): number[] {
  return (asked.text(option) ?? "").split(",").flatMap((word) => wholeOf(`--${option}`, word || undefined) ?? []);
}

function linesOf(asked: Invocation, plan: ForkPlan): string[] {
  const { screen } = asked;
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
