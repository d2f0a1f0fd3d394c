import { useMutation } from "@tanstack/react-query";
import { call, type JournalRecord } from "../api.ts";
import { parseJson, unwrap } from "../format.ts";
import { ErrorMessage } from "../ui/error-message.tsx";

interface Blob {
  readonly blob: string;
  readonly bytes: number;
  readonly type: string;
}

const isBlob = (value: object): value is Blob => {
  const { blob, bytes, type } = value as Partial<Record<keyof Blob, unknown>>;
  return (
    typeof blob === "string" && /^[0-9a-f]{64}$/.test(blob) && typeof bytes === "number" && typeof type === "string"
  );
};

/** The references in a value: the journal has them in place of large parts. */
function blobsIn(value: unknown): Blob[] {
  if (typeof value !== "object" || value === null) return [];
  return isBlob(value) ? [value] : Object.values(value).flatMap(blobsIn);
}

/** Large parts of the row's records, to download. */
export function BlobLinks({ run, records }: { readonly run: string; readonly records: readonly JournalRecord[] }) {
  const found = new Map(records.flatMap(({ data }) => blobsIn(unwrap(data))).map((one) => [one.blob, one]));
  if (found.size === 0) return null;
  return (
    <section className="part" aria-label="Large parts">
      <h3>Large parts</h3>
      <ul>
        {[...found.values()].map((one) => (
          <li key={one.blob}>
            <BlobLink run={run} blob={one} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function BlobLink({ run, blob: { blob, bytes, type } }: { readonly run: string; readonly blob: Blob }) {
  const download = useMutation({ mutationFn: async () => save(`${blob.slice(0, 12)}.${type}`, await read(run, blob)) });
  return (
    <>
      <button type="button" disabled={download.isPending} onClick={() => download.mutate()}>
        Download {type}, {Math.ceil(bytes / 1024).toLocaleString("en")} KiB
      </button>
      {download.error !== null && <ErrorMessage error={download.error} />}
    </>
  );
}

async function read(id: string, blob: string): Promise<string> {
  const texts: string[] = [];
  for (let n = 0, chunks = 1; n < chunks; n++) {
    const { chunk } = await call("runs.blob", { params: { id, blob }, query: { n: String(n) } });
    if (chunk === undefined) throw new Error("The run was deleted, or the blob is incomplete.");
    texts.push(chunk.text);
    ({ chunks } = chunk);
  }
  return texts.join("");
}

/** Text and bytes as they are, everything else as the journal's JSON. */
function contentOf(text: string): string | Uint8Array<ArrayBuffer> {
  const value = unwrap(parseJson(text));
  if (typeof value !== "string") return text;
  return text.startsWith('"') ? value : Uint8Array.from(atob(value), (letter) => letter.charCodeAt(0));
}

function save(name: string, text: string): void {
  const url = URL.createObjectURL(new globalThis.Blob([contentOf(text)], { type: "application/octet-stream" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
