import { defined } from "../../base/defined.ts";
import type { blobs } from "../../protocol/routes/blobs.ts";
import { fenceOf } from "../../protocol/shapes.ts";
import type { HandlersOf, ServerDeps } from "../handler-types.ts";

export function blobHandlers({ store: { read, fenced } }: ServerDeps): HandlersOf<typeof blobs> {
  return {
    async "runs.blob"({ params: { id, blob }, query: { n = 0 } }, { tenant }) {
      return defined({ chunk: await read.blob(tenant, { run: id }, blob, n) });
    },
    async "store.putBlob"({ body: { fence, part } }, { tenant }) {
      await fenced.putBlob(fenceOf(tenant, fence), part);
      return {};
    },
    async "store.blob"({ body: { target, blob, n } }, { tenant }) {
      return defined({ chunk: await read.blob(tenant, target, blob, n) });
    },
  };
}
