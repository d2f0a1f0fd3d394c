import type { Runner } from "../../src/exports/index.ts";
import type { TapeContext } from "../../src/sdk/context.ts";
import { withContext } from "../../src/sdk/current.ts";
import type { AnyWorkflow } from "../../src/sdk/workflow.ts";

/** Operations whose second argument is a body: replay must not call it once its result is recorded. */
const withBody = new Set(["step", "decide", "sample"]);

type Call = (...args: unknown[]) => unknown;
type Body = (...args: never[]) => unknown;

/** The runner with bodies that note the run and the operation before they start. */
export function countedRunner(runner: Runner, note: (call: string) => void): Runner {
  const made = new WeakSet<TapeContext>();
  const inside = (tape: TapeContext): TapeContext => {
    if (made.has(tape)) return tape;
    const counted = (name: unknown, body: Body): Body =>
      ((...args: never[]) => {
        note(`${tape.runId} ${String(name)}`);
        return body(...args);
      }) as Body;
    const branch = (one: unknown): unknown =>
      typeof one === "function" ? (inner: TapeContext) => (one as Call)(inside(inner)) : one;
    const context = new Proxy(tape, {
      get(target, key) {
        const member: unknown = Reflect.get(target, key, target);
        if (typeof member !== "function") return member;
        const call = member.bind(target) as Call;
        if (withBody.has(String(key)))
          return (name: unknown, body: Body, ...more: unknown[]) => call(name, counted(name, body), ...more);
        if (key === "transaction")
          return (name: unknown, at: unknown, body: Body, ...more: unknown[]) =>
            call(name, at, counted(name, body), ...more);
        if (key === "lane") return (name: unknown, one: unknown) => call(name, branch(one));
        if (key === "race" || key === "any") return (branches: unknown[]) => call(branches.map(branch));
        return call;
      },
    });
    made.add(context);
    return context;
  };
  const counted = (workflow: AnyWorkflow): AnyWorkflow => ({
    ...workflow,
    run: (tape, input) => {
      const context = inside(tape);
      return withContext(context, () => workflow.run(context, input));
    },
  });
  return { ...runner, workflows: new Map([...runner.workflows].map(([name, flow]) => [name, counted(flow)])) };
}
