import type { z } from "zod";
import { encode } from "../base/codec.ts";
import type { Fence } from "../model/fence.ts";
import { recordVersion } from "../model/records.ts";
import { contract } from "../protocol/contract.ts";
import { wireText } from "../protocol/values.ts";
import type { AppendRequest, AppendResult, FencedOps } from "../store/contract/store.ts";
import { runBatch, staleError } from "../store/validate/arguments.ts";
import { checkEntry, checkFence, checkList } from "../store/validate/entry.ts";
import { remoteBlobWrites } from "./blobs.ts";
import { isOwn, type RemoteContext } from "./context.ts";
import { badResponse, decoded } from "./request.ts";
import { requestBatcher } from "./request-batcher.ts";
import { remoteCheckpoints } from "./sinks.ts";
import { remoteStreamWrites } from "./streams.ts";

type Verdict = z.output<(typeof contract)["store.append"]["answer"]>["results"][number];

/**
 * Appends of many journals in one request. Each append is checked and encoded here, so that its writer gets the error;
 * the store behind the server checks it again, with its fence. An append whose response was lost is sent again and gets
 * the same result as the first time.
 */
export function remoteFenced(deps: RemoteContext): FencedOps & { close(): Promise<void> } {
  const { caller, limits, clock, maxRequests } = deps;
  const batcher = requestBatcher<Verdict>({
    clock,
    limits,
    maxRequests,
    send: async (texts) => {
      const body = `{"batch":[${texts.join(",")}]}`;
      const json = await caller.send("store.append", { method: "POST", url: contract["store.append"].path, body });
      return verdictsOf(json, texts.length);
    },
  });
  const append = async (fence: Fence, entry: AppendRequest): Promise<AppendResult> => {
    checkFence(fence);
    if (!isOwn(deps, fence.tenant)) throw staleError(fence);
    const text = `{"fence":${fenceText(fence)},"entry":${entryText(entry, deps)}}`;
    const verdict = await batcher.submit({ text, journal: fence.journal });
    if (!verdict.ok) throw verdict.error;
    const { head, notes } = verdict;
    return { head, notes };
  };
  return {
    append,
    appendAll: (batch) =>
      runBatch(batch, limits, async (item) => {
        checkList("a batch's item", item);
        return append(item[0], item[1]);
      }),
    ...remoteCheckpoints(deps),
    ...remoteStreamWrites(deps),
    ...remoteBlobWrites(deps),
    close: () => batcher.close(),
  };
}

const fences = new WeakMap<Fence, string>();

/** Encoded once per term, because a driver sends it with each append. */
function fenceText(fence: Fence): string {
  const known = fences.get(fence);
  if (known !== undefined) return known;
  const { journal, token, nonce } = fence;
  const text = `{"journal":${journal},"token":"${token}","nonce":"${nonce}"}`;
  fences.set(fence, text);
  return text;
}

function entryText(entry: AppendRequest, { limits }: RemoteContext): string {
  const { after, records, bodies } = checkEntry(entry, limits);
  const texts = records.map(({ kind, data }, k) => `{"kind":"${kind}","data":${dataText(bodies[k]!, data)}}`);
  const begins = entry.begins === undefined ? "" : `,"begins":${entry.begins}`;
  return `{"after":${after},"records":[${texts.join(",")}]${begins}}`;
}

const versionText = `{"v":${recordVersion},`;

/** The record's text without the version that a store adds in front; values beyond plain JSON are encoded again. */
const dataText = (body: string, data: unknown): string =>
  wireText(body.startsWith(versionText) ? `{${body.slice(versionText.length)}` : encode(data));

/** Reads the most common response without the schema; the checks are the same. */
function verdictsOf(json: unknown, count: number): readonly Verdict[] {
  const results = (json as { results?: unknown } | null)?.results;
  const plain = Array.isArray(results) && results.every(isPlain);
  const read = plain ? (results as Verdict[]) : (decoded("store.append", json) as { results: Verdict[] }).results;
  if (read.length !== count) throw badResponse("store.append", `${read.length} verdicts for ${count} appends`);
  return read;
}

function isPlain(given: unknown): boolean {
  if (typeof given !== "object" || given === null) return false;
  const { ok, head, notes } = given as { ok?: unknown; head?: unknown; notes?: unknown };
  return ok === true && isWhole(head) && isWhole(notes) && Object.keys(given).length === 3;
}

const isWhole = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
