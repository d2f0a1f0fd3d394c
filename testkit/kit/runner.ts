import type { TapeContext } from "../../src/sdk/context.ts";
import { withContext } from "../../src/sdk/current.ts";
import type { CompensateDefinition, EffectCall, EffectContext, EffectDefinition } from "../../src/sdk/effect.ts";
import type { AnyWorkflow, Runner } from "../../src/sdk/workflow.ts";
import type { TestProcess } from "./process.ts";

/** One call of user code that touches the world, as the world side sees it. */
export interface BodyCall {
  readonly process: string;
  readonly role: "effect" | "compensation" | "observe";
  readonly effect: string;
  readonly semantics: string;
  readonly runId: string;
  readonly key: string;
  readonly token: bigint;
  readonly attempt: number;
  readonly args: unknown;
  readonly at: number;
  /** When the process was about to call: earlier than `at` if it was stopped in between. */
  readonly asked: number;
  /** What the body answered: whether or not anybody heard it. */
  came: { readonly value: unknown } | { readonly error: unknown } | undefined;
}

/** The runner as this process has it: whatever acts on the world goes through the process, and is written down. */
export function runnerIn(process: TestProcess, runner: Runner, calls: BodyCall[] = []): Runner {
  const known = new Map<EffectDefinition, EffectDefinition>();
  const inside = (definition: EffectDefinition): EffectDefinition => {
    const made = known.get(definition) ?? effectIn(process, definition, calls);
    known.set(definition, made);
    return made;
  };
  const workflows = [...runner.workflows].map(([name, workflow]) => [name, workflowIn(workflow, inside)] as const);
  const effects = [...runner.effects].map(([name, definition]) => [name, inside(definition)] as const);
  return { workflows: new Map(workflows), effects: new Map(effects) };
}

function effectIn(process: TestProcess, definition: EffectDefinition, calls: BodyCall[]): EffectDefinition {
  const { name, semantics, body, observe, compensate: inverse } = definition;
  const through = async <T>(
    role: BodyCall["role"],
    args: unknown,
    fx: EffectContext,
    work: () => T | Promise<T>,
  ): Promise<T> => {
    const { runId, key, token, attempt } = fx;
    const asked = process.at;
    const kind = role === "compensation" ? (inverse?.semantics ?? semantics) : semantics;
    return process.act(role === "effect" ? name : `${role} ${name}`, async () => {
      const { at } = process;
      const call: BodyCall = {
        process: process.name,
        role,
        effect: name,
        semantics: kind,
        runId,
        key,
        token,
        attempt,
        args,
        at,
        asked,
        came: undefined,
      };
      calls.push(call);
      try {
        const value = await work();
        call.came = { value };
        return value;
      } catch (error) {
        call.came = { error };
        throw error;
      }
    });
  };
  const undo = (one: CompensateDefinition): CompensateDefinition => {
    const look = one.observe;
    return {
      ...one,
      run: (args, result, fx) => through("compensation", args, fx, () => one.run(args, result, fx)),
      observe: look === undefined ? undefined : (args, fx) => through("observe", args, fx, () => look(args, fx)),
    };
  };
  return {
    ...definition,
    body: body === undefined ? undefined : (args, fx) => through("effect", args, fx, () => body(args, fx)),
    observe: observe === undefined ? undefined : (args, fx) => through("observe", args, fx, () => observe(args, fx)),
    compensate: inverse === undefined ? undefined : undo(inverse),
  };
}

function workflowIn(workflow: AnyWorkflow, inside: (definition: EffectDefinition) => EffectDefinition): AnyWorkflow {
  const act = <R>(given: EffectCall<R>): EffectCall<R> => ({ ...given, effect: inside(given.effect) });
  return {
    ...workflow,
    run: (tape, input) => {
      const context: TapeContext = new Proxy(tape, {
        get(target, key) {
          if (key === "effect") return <R>(given: EffectCall<R>) => target.effect(act(given));
          if (key === "attempt") return <R>(given: EffectCall<R>) => target.attempt(act(given));
          const member: unknown = Reflect.get(target, key, target);
          return typeof member === "function" ? member.bind(target) : member;
        },
      });
      return withContext(context, () => workflow.run(context, input));
    },
  };
}
