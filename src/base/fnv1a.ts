/** FNV-1a of a text's UTF-8 bytes, 32 bits. It never changes: places of work are derived from it. */
export function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}
