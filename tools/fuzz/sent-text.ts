import { gunzipSync } from "node:zlib";
import { defaultServerLimits } from "../../src/server/limits.ts";
import { bodyBytes, type Shot } from "./shot.ts";

/**
 * All text of the request: what a response repeats of it is no leak. The body counts as the server reads it, without
 * chunks and decompressed: a response that grants a term names the nonce of the request, which may have been compressed.
 */
export function sentText(shot: Shot): string {
  if (shot.raw !== undefined) return onTheSocket(Buffer.from(shot.raw, "base64"));
  let target = shot.target;
  try {
    target = decodeURIComponent(target.replaceAll("+", " "));
  } catch {
    // it is no valid URL, so a response can only repeat it unchanged
  }
  return [shot.target, target, decompressed(bodyBytes(shot)), ...Object.values(shot.headers)].join("\n");
}

/** The sent bytes, and the bodies in them. */
function onTheSocket(bytes: Buffer): string {
  const text = bytes.toString("latin1");
  const bodies = [...text.matchAll(/\r?\n\r?\n/g)].flatMap(({ index, 0: { length } }) => {
    const body = bytes.subarray(index + length);
    return [body, withoutChunks(body)].map(decompressed);
  });
  return [text, ...bodies].join("\n");
}

/** Joins the chunks, up to the first invalid one. */
function withoutChunks(bytes: Buffer): Buffer {
  const chunks: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const [line, size = ""] = /^([0-9a-f]{1,8})\r\n/i.exec(bytes.toString("latin1", at, at + 10)) ?? [];
    if (line === undefined) break;
    const from = at + line.length;
    at = from + Number.parseInt(size, 16);
    chunks.push(bytes.subarray(from, at));
    at += "\r\n".length;
  }
  return Buffer.concat(chunks);
}

/** The server decompresses no more than this, so no response can repeat anything beyond. */
const maxOutputLength = defaultServerLimits.bodyBytes;

function decompressed(bytes: Buffer = Buffer.alloc(0)): string {
  try {
    return gunzipSync(bytes, { maxOutputLength }).toString("utf8");
  } catch {
    return bytes.toString("utf8"); // not compressed, or not accepted by the server
  }
}
