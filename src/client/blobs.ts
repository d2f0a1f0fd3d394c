import type { BlobReadOps, BlobWriteOps } from "../store/contract/store.ts";
import { staleError } from "../store/validate/arguments.ts";
import { checkBlobPart } from "../store/validate/blobs.ts";
import { isOwn, type RemoteContext } from "./context.ts";

/** Checked here, so that the writer gets the error; the store behind the server checks again, with the fence. */
export function remoteBlobWrites(deps: RemoteContext): BlobWriteOps {
  return {
    async putBlob(fence, part) {
      const { bytes: _, ...checked } = checkBlobPart(fence, part, deps.limits);
      if (!isOwn(deps, fence.tenant)) throw staleError(fence);
      return deps.caller.call("store.putBlob", { body: { fence, part: checked } });
    },
  };
}

export function remoteBlobReads(deps: RemoteContext): BlobReadOps {
  return {
    async blob(tenant, target, blob, n) {
      return isOwn(deps, tenant)
        ? (await deps.caller.call("store.blob", { body: { target, blob, n } })).chunk
        : undefined;
    },
  };
}
