/** Anything that yields random bytes; a Random does. */
export interface ByteSource {
  bytes(n: number): Uint8Array;
}

/**
 * UUID version 7 (RFC 9562): 48 bits of Unix milliseconds, then 74 random bits. Ids of later milliseconds sort later,
 * as text and as bytes; within one millisecond the order is random.
 */
export function uuidv7(ms: number, random: ByteSource): string {
  const time = Math.floor(ms);
  if (!(time >= 0 && time < 2 ** 48)) throw new RangeError(`not a time in milliseconds: ${ms}`);
  const bytes = random.bytes(16);
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  view.setUint32(0, Math.floor(time / 2 ** 16));
  view.setUint16(4, time % 2 ** 16);
  return format(bytes, 7);
}

/** UUID version 4 (RFC 9562): 122 random bits, for ids that must not reveal when they were created. */
export function uuidv4(random: ByteSource): string {
  return format(random.bytes(16), 4);
}

function format(bytes: Uint8Array, version: number): string {
  bytes[6] = (bytes[6]! & 0x0f) | (version << 4);
  bytes[8] = (bytes[8]! & 0x3f) | 0x80; // the variant of RFC 9562
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, 16).toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
