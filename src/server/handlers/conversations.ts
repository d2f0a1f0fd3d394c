import { defined } from "../../base/defined.ts";
import { TapeError } from "../../model/errors.ts";
import { mayDo } from "../../model/roles.ts";
import { readConversation } from "../../operator/conversation.ts";
import type { ResponseOf } from "../../protocol/contract.ts";
import type { conversations } from "../../protocol/routes/conversations.ts";
import type { ReadOps } from "../../store/contract/store.ts";
import type { HandlersOf, ServerDeps } from "../handler-types.ts";

const maxRuns = 100;
/** A run calls its first model soon; before that it takes a term and a few steps. */
const firstRecords = 12;
/** The first model of a run never changes. */
const maxKnown = 10_000;

export function conversationHandlers({ store }: ServerDeps): HandlersOf<typeof conversations> {
  const { read } = store;
  const models = new Map<string, string>();
  return {
    async "runs.conversation"({ params: { id }, query }, { tenant, role }) {
      // A reader watches how runs work. Callers who start runs and answer their gates also see what they are about.
      const content = mayDo(role, "starter");
      return (await readConversation(store, tenant, id, { ...query, content })) as ResponseOf<"runs.conversation">;
    },
    async "runs.modelUsage"({ query }, { tenant }) {
      const ids = [...new Set(query.of)];
      if (ids.length > maxRuns) {
        throw new TapeError("TAPE_BAD_INPUT", `query.of: at most ${maxRuns} runs`, { field: "of" });
      }
      const usage = await Promise.all(ids.map((id) => usageOf(read, tenant, id, models)));
      return { runs: usage.flatMap((one) => (one === undefined ? [] : [one])) };
    },
  };
}

type Usage = ResponseOf<"runs.modelUsage">["runs"][number];

/** Budgets are rows by key: no journal is read for what was spent. */
async function usageOf(
  read: ReadOps,
  tenant: string,
  id: string,
  models: Map<string, string>,
): Promise<Usage | undefined> {
  const budgets = await read.budgets(tenant, id);
  const spent = (unit: string): number | undefined => budgets.find((row) => row.unit === unit)?.spent;
  const calls = spent("calls") ?? 0;
  const tokens = spent("tokens") ?? 0;
  if (calls === 0 || budgets.length === 0) return undefined;
  const key = `${tenant} ${budgets[0]!.run}`;
  const model = models.get(key) ?? (await firstModel(read, tenant, id));
  if (model !== undefined) models.set(key, model);
  if (models.size > maxKnown) models.delete(models.keys().next().value!); // the one that came first
  return { id, calls, tokens, ...defined({ usd: spent("usd"), model }) };
}

async function firstModel(read: ReadOps, tenant: string, run: string): Promise<string | undefined> {
  const records = await read.journal(tenant, { run }, { from: 1, limit: firstRecords });
  for (const record of records) if (record.kind === "decision.made") return record.data.model;
  return undefined;
}
