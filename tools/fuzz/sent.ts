import { gunzipSync } from "node:zlib";
import { defaultServerLimits } from "../../src/server/limits.ts";
import { bodyBytes, type Shot } from "./shot.ts";

/**
 * Everything that the sender itself put in: what an answer repeats of it is no secret. A request counts as the server
 * reads it, without chunks and unpacked: an answer may name the nonce of a request that was packed, and does where it
 * grants the term.
 */
export function sentText(shot: Shot): string {
  if (shot.raw !== undefined) return onTheSocket(Buffer.from(shot.raw, "base64"));
  let target = shot.target;
  try {
    target = decodeURIComponent(target.replaceAll("+", " "));
  } catch {
    // it is no URL, and is repeated as it stands if at all
  }
  return [shot.target, target, unpacked(bodyBytes(shot)), ...Object.values(shot.headers)].join("\n");
}

/** The bytes as they went, and the bodies among them. */
function onTheSocket(bytes: Buffer): string {
  const text = bytes.toString("latin1");
  const bodies = [...text.matchAll(/\r?\n\r?\n/g)].flatMap(({ index, 0: { length } }) => {
    const body = bytes.subarray(index + length);
    return [body, withoutChunks(body)].map(unpacked);
  });
  return [text, ...bodies].join("\n");
}

/** As far as there are chunks. */
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

/** The server unpacks no more than this, so no answer can repeat what lies beyond. */
const maxOutputLength = defaultServerLimits.bodyBytes;

function unpacked(bytes: Buffer = Buffer.alloc(0)): string {
  try {
    return gunzipSync(bytes, { maxOutputLength }).toString("utf8");
  } catch {
    return bytes.toString("utf8"); // it is not packed, or nothing that the server unpacks
  }
}
