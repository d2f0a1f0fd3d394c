import type { TapeContext } from "../../src/sdk/context.ts";
import { withContext } from "../../src/sdk/current.ts";
import type { CompensateDefinition, EffectCall, EffectContext, EffectDefinition } from "../../src/sdk/effect.ts";
import type { AnyWorkflow, Runner } from "../../src/sdk/workflow.ts";
import type { TestProcess } from "./process.ts";

/**
 * One call of an effect, an observer or a compensation, as the upstream saw it.
 *
 * @example
 * const sent = round.calls.filter((call: BodyCall) => call.role === "effect");
 */
export interface BodyCall {
  /** The process that called. */
  readonly process: string;
  /** What was called: the effect, its compensation, or its observation. */
  readonly role: "effect" | "compensation" | "observe";
  readonly effect: string;
  /** The semantics of the effect. */
  readonly semantics: string;
  readonly runId: string;
  /** The idempotency key of the call. */
  readonly key: string;
  readonly token: bigint;
  readonly attempt: number;
  readonly args: unknown;
  readonly at: number;
  /** When the process was about to call; earlier than `at` if it was paused in between. */
  readonly requestedAt: number;
  /** What the body returned or threw, whether or not the process received it. */
  result: { readonly value: unknown } | { readonly error: unknown } | undefined;
}

/** The runner for this process: effects, observers and compensations go through the process and are recorded. */
export function runnerIn(process: TestProcess, runner: Runner, calls: BodyCall[] = []): Runner {
  const known = new Map<EffectDefinition, EffectDefinition>();
  const inside = (definition: EffectDefinition): EffectDefinition => {
    const made = known.get(definition) ?? effectIn(process, definition, calls);
    known.set(definition, made);
    return made;
  };
  const workflows = [...runner.workflows].map(([name, workflow]) => [name, workflowIn(workflow, inside)] as const);
  const effects = [...runner.effects].map(([name, definition]) => [name, inside(definition)] as const);
  const { queues = new Map(), build } = runner;
  const parts = { workflows: new Map(workflows), effects: new Map(effects), queues };
  return build === undefined ? parts : { ...parts, build };
}

function effectIn(process: TestProcess, definition: EffectDefinition, calls: BodyCall[]): EffectDefinition {
  const { name, semantics, body, observe, compensate: compensation } = definition;
  const through = async <T>(
    role: BodyCall["role"],
    args: unknown,
    fx: EffectContext,
    work: () => T | Promise<T>,
  ): Promise<T> => {
    const { runId, key, token, attempt } = fx;
    const requestedAt = process.at;
    const kind = role === "compensation" ? (compensation?.semantics ?? semantics) : semantics;
    return process.callUpstream(role === "effect" ? name : `${role} ${name}`, async () => {
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
        requestedAt,
        result: undefined,
      };
      calls.push(call);
      try {
        const value = await work();
        call.result = { value };
        return value;
      } catch (error) {
        call.result = { error };
        throw error;
      }
    });
  };
  const compensateIn = (one: CompensateDefinition): CompensateDefinition => {
    const observeOf = one.observe;
    return {
      ...one,
      run: (args, result, fx) => through("compensation", args, fx, () => one.run(args, result, fx)),
      observe:
        observeOf === undefined ? undefined : (args, fx) => through("observe", args, fx, () => observeOf(args, fx)),
    };
  };
  return {
    ...definition,
    body: body === undefined ? undefined : (args, fx) => through("effect", args, fx, () => body(args, fx)),
    observe: observe === undefined ? undefined : (args, fx) => through("observe", args, fx, () => observe(args, fx)),
    compensate: compensation === undefined ? undefined : compensateIn(compensation),
  };
}

function workflowIn(workflow: AnyWorkflow, inside: (definition: EffectDefinition) => EffectDefinition): AnyWorkflow {
  const callIn = <R>(call: EffectCall<R>): EffectCall<R> => ({ ...call, effect: inside(call.effect) });
  return {
    ...workflow,
    run: (tape, input) => {
      const context: TapeContext = new Proxy(tape, {
        get(target, key) {
          if (key === "effect") return <R>(call: EffectCall<R>) => target.effect(callIn(call));
          if (key === "attempt") return <R>(call: EffectCall<R>) => target.attempt(callIn(call));
          const member: unknown = Reflect.get(target, key, target);
          return typeof member === "function" ? member.bind(target) : member;
        },
      });
      return withContext(context, () => workflow.run(context, input));
    },
  };
}
