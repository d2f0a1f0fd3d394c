import { readable } from "../../model/payloads.ts";
import type { RecordData } from "../../model/records.ts";
import type { TapeContext, ValuesContext } from "../../sdk/context.ts";
import type { DriveHandle } from "../core/handle.ts";
import { asStored } from "../replay/stored-value.ts";
import type { Operations } from "./operations.ts";

/** Values from inside a run. Reads are recorded; writes are fenced by the run's lease and compare the version. */
export function valuesOf(context: Operations & Pick<TapeContext, "sample">, drive: DriveHandle): ValuesContext {
  return {
    get: (key) =>
      context.sample(`value ${key}`, async () => {
        const found = await drive.options.store.read.value(drive.options.tenant, key);
        return found === undefined || found.deleted
          ? undefined
          : { version: found.version, value: readable(found.value, { key }) };
      }),
    read: (key) =>
      context.sample(`version of ${key}`, async () => {
        const {
          version = 0,
          deleted = true,
          value,
        } = (await drive.options.store.read.value(drive.options.tenant, key)) ?? {};
        return deleted ? { version, value: undefined } : { version, value: readable(value, { key }) };
      }),
    put: (key, value, version) => {
      const stored = asStored(value);
      return context.operation<number>({
        kinds: ["value.written", "step.done"],
        name: key,
        result: ({ record }) => {
          const data = record.data as RecordData<"value.written"> & { error?: unknown };
          if (data.error !== undefined) throw data.error;
          return data.version;
        },
        begin: (handle) => {
          const data = { pos: handle.pos, key, version: version + 1, value: stored };
          handle.end({ kind: "value.written", data }, version + 1);
        },
      });
    },
  };
}
