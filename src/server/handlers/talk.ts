import { isTapeError, TapeError } from "../../model/errors.ts";
import type { talk } from "../../protocol/routes/talk.ts";
import { fenceOf } from "../../protocol/shapes.ts";
import { assertGateValue } from "../../sdk/workflow.ts";
import type { CallbackBody, Reply } from "../../store/contract/store.ts";
import { followPublished } from "../../store/follow.ts";
import { limitKey } from "../address.ts";
import { stamped } from "../authority.ts";
import { type HandlersOf, listed, type ServerDeps } from "../handler-types.ts";
import { existingRun, maxWaitMs, progressOf, waitFor } from "./runs.ts";

export function talkHandlers(deps: ServerDeps): HandlersOf<typeof talk> {
  const { store, clock, runner } = deps;
  const { read } = store;
  return {
    async "runs.published"({ params: { id }, query }, { tenant }) {
      return listed("published", await read.published(tenant, id, query));
    },
    async "runs.watch"({ params: { id, name }, query }, { tenant, signal }) {
      const { journal } = await existingRun(read, tenant, id);
      const { after = 0 } = query;
      return followPublished({ ...{ store, clock, signal, tenant, run: id, journal, name }, after });
    },
    async "runs.ask"({ params: { id }, query, body }, who) {
      await assertGateValue(runner, body.name, body.value);
      const until = clock.mono() + Math.min(query.waitMs ?? 0, maxWaitMs);
      const sent = await who.intake.signal(who.tenant, id, { ...stamped(who, body), asks: true });
      const answered: { reply?: Reply } = {};
      const done = async (): Promise<boolean> => {
        const run = await progressOf(read, who.tenant, id);
        const reply = await read.reply(who.tenant, id, sent.n);
        if (reply !== undefined) answered.reply = reply;
        else if (run.ended) throw endedUnanswered(id, run.status);
        return reply !== undefined;
      };
      if (!(await done()) && clock.mono() < until) {
        who.waits();
        await waitFor(deps, who, (await progressOf(read, who.tenant, id)).journal, until, done);
      }
      return { ...sent, ...answered };
    },
    async "runs.reply"({ params: { id, n } }, { tenant }) {
      const reply = await read.reply(tenant, id, n);
      return reply === undefined ? {} : { reply };
    },
    async "callbacks.deliver"({ params: { token }, body }, who) {
      try {
        return await store.intake.deliver(undefined, token, bodyOf(body));
      } catch (error) {
        // A wrong token costs one hash and no query; all the same, an address may try only so often.
        if (isTapeError(error, "TAPE_NOT_FOUND")) deps.failures.count(limitKey(who.via.address ?? ""));
        throw error;
      }
    },
    "store.deliver": ({ body: { token, body } }, who) => who.intake.deliver(who.tenant, token, bodyOf(body)),
    async "store.callbackSecret"({ body: { fence } }, { tenant }) {
      return { secret: await store.claim.callbackSecret(fenceOf(tenant, fence)) };
    },
  };
}

function endedUnanswered(run: string, status: string): TapeError {
  return new TapeError("TAPE_RUN_ENDED", `run ${run} ended as ${status} without a reply`, { run, status });
}

interface SentBody extends Pick<CallbackBody, "value"> {
  readonly raw?: {
    readonly body: string;
    readonly headers: readonly { readonly name: string; readonly value: string }[];
  };
}

function bodyOf({ raw, ...body }: SentBody): CallbackBody {
  if (raw === undefined) return body;
  const headers = Object.fromEntries(raw.headers.map(({ name, value }) => [name, value]));
  return { ...body, raw: { body: raw.body, headers } };
}
