import { fingerprint } from "../../base/canonical.ts";
import type { Duration } from "../../base/duration.ts";
import { TapeError } from "../../model/errors.ts";
import type { Fence } from "../../model/fence.ts";
import type { RecordData } from "../../model/records.ts";
import type {
  Branches,
  BudgetContext,
  Child,
  DecisionContext,
  DecisionDetails,
  DetachedOptions,
  DetachedRun,
  EffectResult,
  GateOptions,
  MapOptions,
  ObjectDefinition,
  ObjectHandlers,
  ObjectInRun,
  SpawnOptions,
  StepContext,
  StepOptions,
  TapeContext,
  ValuesContext,
} from "../../sdk/context.ts";
import { currentSite, runAt } from "../../sdk/current.ts";
import type { EffectCall } from "../../sdk/effect.ts";
import type { GateDefinition } from "../../sdk/gate.ts";
import type { ScopeHandle, ScopeOptions } from "../../sdk/scope.ts";
import { emitted } from "../../sdk/stream.ts";
import type { OpenStream, StreamWriter } from "../../sdk/stream-types.ts";
import type { Callback, CallbackOptions, GateRequest } from "../../sdk/talk.ts";
import type { Workflow } from "../../sdk/workflow.ts";
import { abandonEffect } from "../effects/abandon.ts";
import { EffectFailed, startEffect } from "../effects/inline.ts";
import { effectResultOf } from "../effects/outcome.ts";
import { type Delivery, nowName } from "../replay/history.ts";
import { asStored, ignoreRejection } from "../replay/stored-value.ts";
import { budgetOf } from "./budget.ts";
import { Callbacks } from "./callbacks.ts";
import { spawnChild } from "./children.ts";
import { spawnDetached } from "./detached.ts";
import { openGate, sleepFor, sleepUntil } from "./gates.ts";
import { GenerationContext } from "./generation-context.ts";
import { label } from "./labels.ts";
import { cutOf } from "./lanes.ts";
import { mapItems } from "./map.ts";
import { reportModelCall } from "./model-figures.ts";
import { objectInRun } from "./objects.ts";
import { type OperationHandle, type Operations, type RecordOf, unwrap } from "./operations.ts";
import { any, race } from "./race.ts";
import type { ScopeSpec } from "./scope.ts";
import { sagaSpec, scopeSpec, timeoutSpec } from "./scope-spec.ts";
import { Scopes } from "./scopes.ts";
import { attemptBody, StepAttempts, stepPolicyOf } from "./steps.ts";
import { publish } from "./talk.ts";
import { attemptTransaction } from "./transactions.ts";
import { valuesOf } from "./values.ts";

// Steps are the hottest path of the engine: whatever does not depend on the step is created once.
const stepKinds = ["step.done", "step.failed"] as const;
const decisionKinds = ["decision.made", "step.failed", "step.done"] as const;
const stepResult = ({ record }: Delivery): unknown => unwrap(record.data as RecordData<"step.done">);

/** What the body of a step without options receives. What few bodies use is created on first access. */
class BodyContext implements StepContext {
  readonly #ops: Operations;
  readonly #handle: Pick<OperationHandle<unknown>, "pos" | "abortSignal">;
  readonly attempt = 1;

  constructor(ops: Operations, handle: Pick<OperationHandle<unknown>, "pos" | "abortSignal">) {
    this.#ops = ops;
    this.#handle = handle;
  }

  get abortSignal(): AbortSignal {
    return this.#handle.abortSignal;
  }

  get last(): string | undefined {
    return this.#ops.lastNote(false);
  }

  get stream(): OpenStream {
    return this.#ops.drive.openStream(this.#handle.pos);
  }
}

/** The context that a workflow receives. */
export class Context extends GenerationContext implements TapeContext {
  #values: ValuesContext | undefined;
  #budget: BudgetContext | undefined;
  #callbacks: Callbacks | undefined;
  #scopes: Scopes | undefined;
  get values(): ValuesContext {
    this.#values ??= valuesOf(this, this.drive);
    return this.#values;
  }

  get budget(): BudgetContext {
    this.#budget ??= budgetOf(this, this.drive);
    return this.#budget;
  }

  get runId(): string {
    return this.drive.options.runId;
  }

  get fence(): Fence {
    return this.drive.options.lease.fence;
  }

  get abortSignal(): AbortSignal {
    return this.scopeAt(currentSite())?.abortSignal ?? this.drive.abortSignal;
  }

  /** Sampled once, and written before any record that may depend on it. */
  now(): number {
    // The loser of a race may call this after the function has ended. A replay would not, so it is not recorded.
    if (this.drive.bodyEnded) return Math.floor(this.drive.options.clock.wall());
    this.refuseNested("now", "tape.now()");
    const pos = this.nextPosition({ kinds: ["sample.taken"], name: nowName });
    if (pos === undefined) throw new TapeError("TAPE_DIVERGED", "the journal has another operation here");
    const recorded = this.drive.history.byPos.get(pos)?.[0];
    if (recorded?.kind === "sample.taken") return recorded.data.value as number;
    const value = Math.floor(this.drive.options.clock.wall());
    this.writeDetached({ kind: "sample.taken", data: { pos, name: nowName, value } });
    return value;
  }

  uuid(): string {
    const hex = this.#randomHex("tape.uuid()");
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
  }

  random(): number {
    return Number.parseInt(this.#randomHex("tape.random()").slice(0, 12), 16) / 2 ** 48;
  }

  /** The same on every replay, different in every run. */
  #randomHex(what: string): string {
    this.refuseNested("chance", what);
    const { tenant } = this.drive.options;
    const { created, generation } = this.drive.history;
    const { inputHash, fork } = created;
    // Kept operations of a fork were computed with the seed of the run that they come from.
    const lane = this.laneNow;
    const next = this.nextIn(lane);
    const seed = fork?.seeds.find(({ before, lanes }) => next < cutOf(before, lanes, lane.number))?.run ?? this.runId;
    const drawn = [tenant, seed, inputHash, ++lane.samples];
    if (generation.number > 1) return fingerprint([...drawn, lane.path, generation.number]);
    return fingerprint([...drawn, ...(lane === this.lanes.root ? [] : [lane.path])]);
  }

  progress(note?: string): void {
    this.drive.options.lease.progress(note);
  }

  log(message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    if (this.drive.replay.live) this.drive.options.log("info", message, { run: this.runId, ...fields });
  }

  /**
   * A run that reaches this line after the change records a marker, which takes a position. A run that passed it earlier
   * has an operation at this position or a later one already: it gets false, no marker and no position.
   */
  patched(name: string): boolean {
    const { history, bodyEnded } = this.drive;
    if (bodyEnded) return true; // as in now()
    this.refuseNested("patch.marked", name);
    const lane = this.laneNow;
    const next = this.nextIn(lane);
    const recorded = history.byPos.get(next)?.[0];
    const marked = recorded?.kind === "patch.marked" && recorded.data.name === name;
    if (!marked && (history.lastPos.get(lane.number) ?? -1) >= next) return false;
    const pos = this.nextPosition({ kinds: ["patch.marked"], name });
    if (!marked && pos !== undefined) this.writeDetached({ kind: "patch.marked", data: { pos, name } });
    return true;
  }

  step<T>(name: string, body: (context: StepContext) => T | Promise<T>, options?: StepOptions): Promise<T> {
    const policy = options === undefined ? undefined : stepPolicyOf(name, options);
    const record: RecordOf = (pos, result) => ({ kind: "step.done", data: { pos, name, ...result } });
    return this.operation<T>({
      kinds: stepKinds,
      name,
      result: stepResult as (delivery: Delivery) => T,
      begin: (handle) =>
        policy === undefined
          ? this.body(handle, () => body(new BodyContext(this, handle)), record)
          : new StepAttempts(this, handle, policy, attemptBody(this, handle, body), record).start(),
    });
  }

  transaction<T>(
    name: string,
    source: unknown,
    body: (client: never, context: StepContext) => T | Promise<T>,
    options: StepOptions = {},
  ): Promise<T> {
    const policy = stepPolicyOf(name, options);
    const record: RecordOf = (pos, result) => ({ kind: "step.done", data: { pos, name, ...result } });
    return this.operation<T>({
      kinds: stepKinds,
      name,
      commits: true,
      result: stepResult as (delivery: Delivery) => T,
      begin: (handle) =>
        new StepAttempts(this, handle, policy, attemptTransaction(this.drive, handle, source, body), record).start(),
    });
  }

  sample<T>(name: string, body: () => T | Promise<T>): Promise<T> {
    if (name === nowName) return Promise.reject(new TapeError("TAPE_BAD_INPUT", `the sample name ${name} is reserved`));
    return this.operation<T>({
      kinds: ["sample.taken", "step.done"],
      name,
      result: ({ record }) => unwrap<T>(record.data as RecordData<"step.done">),
      begin: (handle) =>
        this.body(handle, body, (pos, result) =>
          result.error === undefined
            ? { kind: "sample.taken", data: { pos, name, value: result.value } }
            : { kind: "step.done", data: { pos, name, error: result.error } },
        ),
    });
  }

  decide<T>(name: string, body: (decision: DecisionContext) => T | Promise<T>, options?: StepOptions): Promise<T> {
    const policy = options === undefined ? undefined : stepPolicyOf(name, options);
    let notes: DecisionDetails = {};
    // Each attempt starts without details, so that the record describes the one that succeeded.
    const decide = (handle: OperationHandle<T>, context: StepContext): T | Promise<T> => {
      let own: DecisionDetails = {};
      let parts: StreamWriter<unknown> | undefined;
      notes = own;
      const made = body({
        get abortSignal() {
          return context.abortSignal;
        },
        attempt: context.attempt,
        get last() {
          return context.last;
        },
        record: (details) => {
          const before = own;
          own = { ...own, ...asStored(details) };
          if (notes === before) notes = own; // otherwise a later attempt has started
        },
        get stream() {
          return context.stream;
        },
        emit: (part) => {
          parts ??= context.stream(emitted);
          return parts.write(part);
        },
      });
      return reportModelCall(this.drive, handle, made, () => own);
    };
    const record: RecordOf = (pos, result) => ({ kind: "decision.made", data: { pos, name, ...result, ...notes } });
    return this.operation<T>({
      kinds: decisionKinds,
      name,
      result: ({ record: { data } }) => unwrap<T>(data as RecordData<"decision.made">),
      begin: (handle) =>
        policy === undefined
          ? this.body(handle, () => decide(handle, new BodyContext(this, handle)), record)
          : new StepAttempts(
              this,
              handle,
              policy,
              attemptBody(this, handle, (context) => decide(handle, context)),
              record,
            ).start(),
    });
  }

  effect<R>(call: EffectCall<R>): Promise<R> {
    const confirmed = this.attempt(call).then((result) => {
      if (result.status === "confirmed") return result.value;
      throw new EffectFailed(call.effect.name, result.reason, result.error);
    });
    return ignoreRejection(confirmed);
  }

  attempt<R>(call: EffectCall<R>): Promise<EffectResult<R>> {
    return this.operation<EffectResult<R>>({
      kinds: ["effect.intended", "effect.received"],
      name: call.effect.name,
      hash: call.hash,
      args: call.args,
      result: (delivery) => effectResultOf<R>(delivery.record),
      begin: (handle) => startEffect(this.drive, call, handle as OperationHandle<EffectResult<unknown>>),
      abandon: (handle) => abandonEffect(this.drive, call, handle as OperationHandle<EffectResult<unknown>>),
    });
  }

  gate<T, R>(gate: GateDefinition<T>, options: GateOptions = {}): Promise<GateRequest<T, R>> {
    return openGate(this, gate, options);
  }

  get callbacks(): Callbacks {
    this.#callbacks ??= new Callbacks(this);
    return this.#callbacks;
  }

  callback<T>(name: string, options: CallbackOptions = {}): Promise<Callback<T>> {
    return this.callbacks.open(name, options);
  }

  publish(name: string, value: unknown): void {
    publish(this, name, value);
  }

  label(labels: Readonly<Record<string, string | undefined>>): void {
    label(this, labels);
  }

  sleep(duration: Duration): Promise<void> {
    return sleepFor(this, duration);
  }

  sleepUntil(moment: Date | number): Promise<void> {
    return sleepUntil(this, moment);
  }

  spawn<I, O>(workflow: Workflow<I, O>, input: I, options: DetachedOptions): Promise<DetachedRun>;
  spawn<I, O>(workflow: Workflow<I, O>, input: I, options?: SpawnOptions): Promise<Child<O>>;
  spawn<I, O>(workflow: Workflow<I, O>, input: I, options: SpawnOptions | DetachedOptions = {}): Promise<DetachedRun> {
    return options.detached === true
      ? spawnDetached(this, workflow, input, options)
      : spawnChild(this, workflow, input, options);
  }

  call<I, O>(workflow: Workflow<I, O>, input: I, options: SpawnOptions = {}): Promise<O> {
    return ignoreRejection(this.spawn(workflow, input, options).then((child) => child.result()));
  }

  map<T, R>(items: readonly T[], fn: (item: T, index: number) => R | Promise<R>, options: MapOptions = {}) {
    return mapItems(this, items, fn, options) as Promise<never[]>;
  }

  object<S, H extends ObjectHandlers<S>>(definition: ObjectDefinition<S, H>, key: string): ObjectInRun<S, H> {
    return objectInRun(this, definition, key);
  }

  async lane<T>(name: string, branch: (tape: TapeContext) => T | Promise<T>): Promise<T> {
    this.refuseNested("lane", `lane "${name}"`);
    const lane = this.lanes.within(this.laneNow, name);
    if (lane.busy) {
      const message = `lane ${lane.path} already has a branch: branches that run concurrently need different names`;
      throw new TapeError("TAPE_BAD_INPUT", message, { lane: lane.path });
    }
    lane.busy = true;
    const context = currentSite()?.context ?? this;
    try {
      const { spend, scope } = currentSite() ?? {};
      return await runAt({ context, lane, ...(spend && { spend }), ...(scope && { scope }) }, () => branch(context));
    } finally {
      lane.busy = false;
    }
  }

  /** The scopes of this drive; undefined: none was opened. */
  get scopes(): Scopes | undefined {
    return this.#scopes;
  }

  #run<T>(spec: ScopeSpec, work: (scope: ScopeHandle) => T | Promise<T>): Promise<T> {
    this.#scopes ??= new Scopes(this);
    return this.#scopes.run(spec, work);
  }

  scope<T>(work: (scope: ScopeHandle) => T | Promise<T>, options: ScopeOptions = {}): Promise<T> {
    return this.#run(scopeSpec(options), work);
  }

  timeout<T>(duration: Duration, work: (scope: ScopeHandle) => T | Promise<T>): Promise<T> {
    return this.#run(timeoutSpec(duration), work);
  }

  saga<T>(work: (scope: ScopeHandle) => T | Promise<T>): Promise<T> {
    return this.#run(sagaSpec, work);
  }

  race<T extends readonly unknown[]>(branches: Branches<T>): Promise<T[number]> {
    return race(this, this.#startBranches("race", branches));
  }

  any<T extends readonly unknown[]>(branches: Branches<T>): Promise<T[number]> {
    return any(this, this.#startBranches("any", branches));
  }

  /** Starts the branches that are functions, each in a lane of its own. */
  #startBranches<T extends readonly unknown[]>(what: string, branches: Branches<T>): Promise<T[number]>[] {
    const at = this.nextIn(this.laneNow);
    return branches.map((branch, k) =>
      typeof branch === "function" ? this.lane(`${what} ${at}.${k}`, branch) : (branch as Promise<T[number]>),
    );
  }
}
