import { defined } from "../../base/defined.ts";
import type { ListedBuild } from "../../host/builds.ts";
import type { MoveResult } from "../../operator/builds.ts";
import { operatorOf, operatorOptions, outputOption, storeOptions, withApp } from "../app.ts";
import { type Command, UsageError } from "../command.ts";
import { type Column, lasting, printJson, printRows, wantsJson } from "../output.ts";

const buildArgument = { name: "build", help: "name of the build" } as const;

/** Exit code of a check that is not fulfilled. */
const notYet = 3;

const columns = (now: number): readonly Column<ListedBuild>[] => [
  { title: "BUILD", of: ({ build }) => build },
  { title: "LIVE", right: true, of: ({ live }) => live },
  { title: "PROCESSES", right: true, of: ({ processes }) => processes },
  { title: "CURRENT", of: ({ current }) => (current ? "yes" : "") },
  { title: "FIRST", right: true, of: ({ firstAt }) => `${lasting(Math.max(0, now - firstAt))} ago` },
  { title: "SEEN", right: true, of: ({ seenAt }) => `${lasting(Math.max(0, now - seenAt))} ago` },
  { title: "STATE", of: stateOf },
  { title: "PINS", of: ({ workflows }) => workflows.join(", ") },
];

/** What an operator has to know about it, in a word or two. */
export function stateOf({ live, processes }: Pick<ListedBuild, "live" | "processes">): string {
  if (live === 0) return "drained";
  return processes === 0 ? "no process" : "";
}

const list: Command = {
  name: "builds",
  summary: "lists builds: live runs that are pinned to each, exactly; processes; which is current",
  options: { ...storeOptions, ...outputOption },
  run: (invocation) =>
    withApp(invocation, async ({ app, store }) => {
      const [found, now] = await Promise.all([app.builds.list(), store.read.now()]);
      printRows(
        invocation,
        found,
        columns(now),
        "no builds; pin a workflow and name the build: createRunner({ build })",
      );
      return 0;
    }),
};

const current: Command = {
  name: "builds current",
  summary: "makes a build current: processes of other builds take no new runs of its pinned workflows",
  arguments: [buildArgument],
  options: { ...operatorOptions, ...storeOptions, ...outputOption },
  run: (invocation) => {
    const audit = operatorOf(invocation);
    return withApp(invocation, async ({ app }) => {
      const { build } = await app.builds.current(invocation.arguments.build!, audit);
      const view = (await app.builds.list()).find((one) => one.build === build)!;
      if (wantsJson(invocation)) printJson(invocation, view);
      else invocation.screen.line(`${build} is current`);
      return 0;
    });
  },
};

const drained: Command = {
  name: "builds drained",
  summary: "exits with 0 if no live run is pinned to the build, with 3 otherwise: for pre-stop hooks and controllers",
  arguments: [buildArgument],
  options: {
    wait: { help: "wait until it is drained" },
    within: { value: "TIME", help: "wait at most this long, such as 10m" },
    ...storeOptions,
    ...outputOption,
  },
  run: (invocation) =>
    withApp(invocation, async ({ app }) => {
      const build = invocation.arguments.build!;
      const within = invocation.duration("within");
      const waits = invocation.given("wait") || within !== undefined;
      const is = await (waits ? app.builds.drained(build, defined({ within })) : app.builds.isDrained(build));
      const live = is ? 0 : ((await app.builds.list()).find((one) => one.build === build)?.live ?? 0);
      if (wantsJson(invocation)) printJson(invocation, { build, drained: is, live });
      else
        invocation.screen.line(
          is ? `${build} is drained` : `${live} ${live === 1 ? "run" : "runs"} of ${build} not ended`,
        );
      return is ? 0 : notYet;
    }),
};

const moveColumns: readonly Column<MoveResult>[] = [
  { title: "RUN", of: ({ run }) => run },
  { title: "RESULT", of: ({ result }) => result },
  { title: "REASON", of: ({ reason = "" }) => reason },
];

const move: Command = {
  name: "builds move",
  summary: "moves live runs to another build, whose processes replay them first; refused where the code differs",
  options: {
    from: { value: "BUILD", help: "the build that the runs are pinned to" },
    to: { value: "BUILD", help: "the build that is to drive them; one of its processes must be running" },
    run: { value: "ID", help: "only this run (default: all live runs of the build)" },
    within: { value: "TIME", help: "how long to wait for each page of replays, at most 1m (default 10s)" },
    ...operatorOptions,
    ...storeOptions,
    ...outputOption,
  },
  run: (invocation) => {
    const [from, to] = [invocation.text("from"), invocation.text("to")];
    if (from === undefined || to === undefined) throw new UsageError("builds move: give --from BUILD and --to BUILD");
    const audit = operatorOf(invocation);
    return withApp(invocation, async ({ app }) => {
      const request = {
        from,
        to,
        ...audit,
        ...defined({ run: invocation.text("run"), within: invocation.duration("within") }),
      };
      const results: MoveResult[] = [];
      for (let above: number | undefined; ; ) {
        const page = await app.builds.move({ ...request, ...defined({ above }) });
        results.push(...page.runs);
        above = page.above;
        if (above === undefined) break;
      }
      printRows(invocation, results, moveColumns, `no live run is pinned to ${from}`);
      return results.every(({ result }) => result === "moved") ? 0 : notYet;
    });
  },
};

export const buildCommands: readonly Command[] = [list, current, drained, move];
