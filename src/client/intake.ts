import { encode } from "../base/codec.ts";
import { defined } from "../base/defined.ts";
import { TapeError } from "../model/errors.ts";
import { notFound } from "../model/not-found.ts";
import type { IntakeOps } from "../store/contract/store.ts";
import { noAttempt } from "../store/validate/arguments.ts";
import { checkPayload, checkRunSpec, encodeRecord } from "../store/validate/entry.ts";
import { remoteAdminWrites } from "./admin.ts";
import { remoteBuildWrites } from "./builds.ts";
import { assertOwn, isOwn, type RemoteContext } from "./context.ts";
import type { CreateBatcher } from "./create-batcher.ts";
import { remoteQueueWrites } from "./queues.ts";
import { remoteRetentionWrites } from "./retention.ts";
import { remoteEventWrites } from "./sinks.ts";
import { remoteStreamTokens } from "./streams.ts";
import { remoteTalkWrites } from "./talk.ts";

/** With `key`, every write uses it as its idempotency key instead of a new one; this implements `once`. */
export function remoteIntake(deps: RemoteContext, creations: CreateBatcher, key?: string): IntakeOps {
  const { caller, limits } = deps;
  const once = { key };
  return {
    ...remoteAdminWrites(deps, key),
    ...remoteQueueWrites(deps, key),
    ...remoteBuildWrites(deps, key),
    ...remoteEventWrites(deps, key),
    ...remoteRetentionWrites(deps, key),
    ...remoteTalkWrites(deps, key),
    ...remoteStreamTokens(deps),
    createRuns: (tenant, specs, first) => creations.create(tenant, specs, first, key),
    // The server adds the credential.
    async signal(tenant, id, { via: _via, ...signal }) {
      if (!isOwn(deps, tenant)) throw notFound("run", id);
      const body = { ...defined(signal), value: signal.value };
      const { mustMatch: _mustMatch, ...data } = body;
      encodeRecord({ kind: "signal.sent", data }, limits);
      return caller.call("runs.signal", { params: { id }, body }, once);
    },
    async cancel(tenant, id, { reason, by, key: named }) {
      if (!isOwn(deps, tenant)) throw notFound("run", id);
      const data = { reason, ...defined({ by }) };
      encodeRecord({ kind: "cancel.requested", data }, limits);
      return caller.call("runs.cancel", { params: { id }, body: { ...data, ...defined({ key: named }) } }, once);
    },
    async leaveEvidence(tenant, { run, pos, sub, token, nonce }, given) {
      const evidence = { ...defined(given), ...("value" in given && { value: given.value }) };
      const named = { run, pos, attempt: 0, token: String(token) };
      encodeRecord({ kind: "effect.evidence", data: { ...evidence, ...named } }, limits);
      if (!isOwn(deps, tenant)) throw noAttempt({ run, pos, sub });
      const attempt = { run, pos, token, nonce, ...defined({ sub }) };
      return caller.call("store.evidence", { body: { attempt, evidence } }, once);
    },
    async fireTimer(tenant, { run, pos, purpose }) {
      if (!isOwn(deps, tenant)) return false;
      return (await caller.call("store.fireTimer", { body: { run, pos, purpose } }, once)).fired;
    },
    async putValue(tenant, name, value, when) {
      assertOwn(deps, tenant);
      checkPayload("value", () => encode(value), limits);
      return caller.call("values.put", { params: { key: name }, body: { value, when } }, once);
    },
    async deleteValue(tenant, name, version) {
      if (!isOwn(deps, tenant)) throw noVersion(name, version);
      return caller.call("values.delete", { params: { key: name }, query: { version } }, once);
    },
    async fireSchedule(tenant, id, version, nextAt, runs, spec) {
      if (!isOwn(deps, tenant)) return false;
      for (const run of runs) checkRunSpec(run, limits);
      const body = {
        id,
        version,
        nextAt,
        runs: runs.map((run) => ({ ...defined(run), input: run.input })),
        ...defined({ spec }),
      };
      return (await caller.call("store.fireSchedule", { body }, once)).fired;
    },
  };
}

const noVersion = (key: string, version: number): TapeError =>
  new TapeError("TAPE_VERSION_CONFLICT", `${key} is not at version ${version}`, { key });
