import { z } from "zod";
import { encode } from "../base/codec.ts";
import { defined } from "../base/defined.ts";
import { TapeError } from "../model/errors.ts";
import type { Claimant, ItemResult } from "../model/lease.ts";
import { contract, type ResponseOf } from "../protocol/contract.ts";
import { mayDo } from "../protocol/route.ts";
import { wireText } from "../protocol/values.ts";
import { runSpec } from "../protocol/views.ts";
import type { CreateResult, RunSpec, StartSignal } from "../store/contract/store.ts";
import { runBatch } from "../store/validate/arguments.ts";
import { checkStart } from "../store/validate/start.ts";
import { assertOwn, type RemoteContext } from "./context.ts";
import { badResponse, decoded } from "./request.ts";
import { type RequestBatcher, requestBatcher } from "./request-batcher.ts";

type Verdicts = ResponseOf<"store.create">["calls"][number]["results"];
type StartResult = ResponseOf<"runs.startAll">["results"][number];
type First = Claimant & { readonly nonce: bigint };

/** Creates runs: those of many callers in one request with the role worker, those of one caller with the role starter. */
export class CreateBatcher {
  readonly #deps: RemoteContext;
  readonly #batcher: RequestBatcher<Verdicts>;
  readonly #starter: RequestBatcher<StartResult>;

  constructor(deps: RemoteContext) {
    this.#deps = deps;
    const { caller, clock, limits, maxRequests } = deps;
    this.#batcher = requestBatcher({
      clock,
      limits,
      maxRequests,
      send: async (texts) => {
        const body = `{"calls":[${texts.join(",")}]}`;
        const json = await caller.send("store.create", { method: "POST", url: contract["store.create"].path, body });
        const { calls } = decoded("store.create", json) as ResponseOf<"store.create">;
        if (calls.length !== texts.length)
          throw badResponse("store.create", `${calls.length} of ${texts.length} answers`);
        return calls.map(({ results }) => results);
      },
    });
    this.#starter = requestBatcher({
      clock,
      limits,
      maxRequests,
      send: async (texts) => {
        const body = `{"runs":[${texts.join(",")}]}`;
        const { path } = contract["runs.startAll"];
        const json = await caller.send("runs.startAll", { method: "POST", url: path, body });
        const { results } = decoded("runs.startAll", json) as ResponseOf<"runs.startAll">;
        if (results.length !== texts.length)
          throw badResponse("runs.startAll", `${results.length} of ${texts.length} runs`);
        return results;
      },
    });
  }

  async create(
    tenant: string,
    specs: readonly RunSpec[],
    first: First | undefined,
    key: string | undefined,
  ): Promise<ItemResult<CreateResult>[]> {
    assertOwn(this.#deps, tenant);
    const { limits, role } = this.#deps;
    // Checked here first, because one bad run must not fail the request for the others.
    const checked = await runBatch(specs, limits, async (spec) => ({ data: checkStart(spec, limits) }));
    const good = specs.filter((_, k) => checked[k]!.ok);
    if (good.length === 0) return checked as ItemResult<CreateResult>[];
    const driving = mayDo(role, "worker");
    const verdicts =
      first !== undefined || (driving && key === undefined)
        ? await this.#together(good, first)
        : await this.#starts(good, key);
    let next = 0;
    return checked.map((verdict) => (verdict.ok ? verdicts[next++]! : verdict));
  }

  async close(): Promise<void> {
    await Promise.all([this.#batcher.close(), this.#starter.close()]);
  }

  async #together(specs: readonly RunSpec[], first: First | undefined): Promise<ItemResult<CreateResult>[]> {
    const holder = first === undefined ? "" : `,"first":${firstText(first)}`;
    const verdicts = await this.#batcher.submit({ text: `{"specs":[${specs.map(specText).join(",")}]${holder}}` });
    if (verdicts.length !== specs.length)
      throw badResponse("store.create", `${verdicts.length} of ${specs.length} runs`);
    return verdicts as ItemResult<CreateResult>[];
  }

  /** One start keeps its result under its own key; many are named by their ids alone. */
  #starts(specs: readonly RunSpec[], key: string | undefined): Promise<ItemResult<CreateResult>[]> {
    const { caller, limits } = this.#deps;
    const alone = specs.length === 1 || key !== undefined;
    const named = new Map(specs.map((spec, k) => [spec, key === undefined || k === 0 ? key : `${key}/${k}`]));
    return runBatch(specs, limits, async (given) => {
      const { schedule, forkedFrom, fork, checked: _checked, signals, ...spec } = given; // the process that drives the run checks it again
      if (schedule !== undefined || forkedFrom !== undefined || fork !== undefined) {
        throw new TapeError("TAPE_FORBIDDEN", "runs of schedules and forks need the role worker", { needs: "worker" });
      }
      const body = { ...defined(spec), ...(signals && { signals: signals.map(wireSignal) }) };
      const started = alone
        ? await caller.call("runs.start", { body }, { key: named.get(given) })
        : await this.#starter.submit({ text: specText({ ...spec, ...(signals && { signals }) }) });
      if ("ok" in started && !started.ok) throw started.error;
      const { id, journal, fresh } = started;
      return { journal, fresh, ...(id !== spec.id && { run: id }) };
    });
  }
}

function firstText({ owner, label, reactor, ttlMs, maxStallMs, nonce }: First): string {
  return JSON.stringify({ owner, label, reactor, ttlMs, maxStallMs, nonce: String(nonce) });
}

/** The server adds the credential. */
const wireSignal = ({ via: _via, ...signal }: StartSignal) => ({ ...defined(signal), value: signal.value });

const simple: ReadonlySet<string> = new Set(["id", "workflow", "version", "input", "checked"]);

/** Most run specs consist of strings and an input, which need no schema to encode. */
function specText(spec: RunSpec): string {
  const fields = defined({ ...spec, input: undefined });
  if (!Object.keys(fields).every((field) => simple.has(field))) {
    const { signals, ...rest } = fields;
    const sent = { ...rest, input: spec.input, ...(signals && { signals: signals.map(wireSignal) }) };
    return JSON.stringify(z.encode(runSpec, sent));
  }
  return `${JSON.stringify(fields).slice(0, -1)},"input":${wireText(encode(spec.input))}}`;
}
