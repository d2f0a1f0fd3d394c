import { isTapeError } from "../model/errors.ts";
import type { Api } from "./api.ts";
import { RpcError, rpcCodes } from "./json-rpc.ts";
import { excerpt } from "./paging.ts";
import { journalPage } from "./tools/run-pages.ts";

const scheme = "tape://runs/";
const mimeType = "application/json";
/** Runs in one page of resources: the newest are the ones that a user picks. */
const pageRuns = 50;

export const resourceTemplates = [
  {
    uriTemplate: `${scheme}{id}`,
    name: "run",
    title: "Run",
    description: "A run: its status, its outcome and the start of its journal",
    mimeType,
  },
] as const;

const uriOf = (run: string): string => `${scheme}${encodeURIComponent(run)}`;

/** The newest runs. The cursor is the number of the last one's journal. */
export async function listResources(api: Api, cursor: string | undefined): Promise<object> {
  if (cursor !== undefined && !/^\d{1,15}$/.test(cursor)) {
    throw new RpcError(rpcCodes.invalidParams, "cursor: not one of this list");
  }
  const query = { limit: pageRuns, ...(cursor !== undefined && { before: Number(cursor) }) };
  const { runs, more } = await api.call("runs.list", { query });
  const resources = runs.map(({ id, workflow, status }) => ({
    uri: uriOf(id),
    name: id,
    title: `${workflow} ${id}`,
    description: `run of ${workflow}, ${status}`,
    mimeType,
  }));
  const last = runs.at(-1);
  return { resources, ...(more === true && last !== undefined && { nextCursor: String(last.journal) }) };
}

export async function readResource(api: Api, uri: unknown): Promise<object> {
  const run = typeof uri === "string" ? runOf(uri) : undefined;
  if (run === undefined) throw notFound(uri);
  try {
    const { outcome, ...view } = await api.call("runs.get", { params: { id: run } });
    const others = { run: { ...view, outcome: excerpt(outcome, "the last record of the journal: tool get_run") } };
    const page = await journalPage(api, { run, inbox: false, cursor: undefined, others });
    return { contents: [{ uri, mimeType, text: JSON.stringify(page) }] };
  } catch (error) {
    if (isTapeError(error, "TAPE_RUN_NOT_FOUND") || isTapeError(error, "TAPE_BAD_INPUT")) throw notFound(uri);
    throw error;
  }
}

function runOf(uri: string): string | undefined {
  if (!uri.startsWith(scheme) || uri.length === scheme.length) return undefined;
  try {
    return decodeURIComponent(uri.slice(scheme.length));
  } catch {
    return undefined;
  }
}

/** The URI is repeated only as far as an error needs it. */
function notFound(uri: unknown): RpcError {
  return new RpcError(rpcCodes.resourceNotFound, "no such resource", { uri: String(uri).slice(0, 600) });
}
