import { type Cipheriv, createCipheriv } from "node:crypto";
import { hash } from "../base/late-builtins.ts";
import type { Random } from "../base/random.ts";
import { TapeError } from "../model/errors.ts";
import type { FeedPage } from "./contract/store.ts";

/**
 * Cursors of one tenant's feed. A position in the feed counts the records of all tenants, so a tenant gets it
 * encrypted: it reveals nothing about the writes of others. Two cursors of the same position differ, so comparing them
 * reveals nothing either. A changed cursor, or another tenant's, is rejected: otherwise the responses to guessed
 * positions would reveal the same.
 *
 * The cipher encrypts blocks of 32 bytes: four Feistel rounds (Luby and Rackoff) with AES as the round function,
 * instead of AES-GCM. All cursors of a page go through each round in one call, which takes a fraction of the time.
 */
export class CursorSeal {
  /** One per round. ECB encrypts each block independently, so one cipher object serves every call. */
  readonly #rounds: readonly Cipheriv[];
  readonly #random: Random;

  constructor(key: string, random: Random) {
    this.#rounds = [1, 2, 3, 4].map((round) =>
      createCipheriv("aes-256-ecb", hash("sha256", `${round} ${key}`, "buffer"), null).setAutoPadding(false),
    );
    this.#random = random;
  }

  page(tenant: string, { records, cursor, ...rest }: FeedPage): FeedPage {
    const [own, ...others] = this.seal(tenant, [cursor, ...records.map((record) => record.cursor)]);
    return { ...rest, records: records.map((record, k) => ({ ...record, cursor: others[k]! })), cursor: own! };
  }

  seal(tenant: string, positions: readonly string[]): string[] {
    const [left, right] = [Buffer.alloc(positions.length * half), Buffer.alloc(positions.length * half)];
    const [check, nonces] = [checkOf(tenant), this.#random.bytes(positions.length * nonceBytes)];
    for (const [k, position] of positions.entries()) {
      const [stamp = "0", journal = "0", seq = "0"] = position.split(".");
      left.writeBigInt64BE(BigInt(stamp), k * half);
      left.writeBigInt64BE(BigInt(journal), k * half + 8);
      right.writeUInt32BE(Math.min(Number(seq), lastSeq), k * half);
      right.set(nonces.subarray(k * nonceBytes, (k + 1) * nonceBytes), k * half + 4);
      right.set(check, k * half + 8);
    }
    for (const [k, round] of this.#rounds.entries()) mix(round, k % 2 === 0 ? [right, left] : [left, right]);
    const sealed = Buffer.alloc(2 * half);
    return positions.map((_, k) => {
      left.copy(sealed, 0, k * half, (k + 1) * half);
      right.copy(sealed, half, k * half, (k + 1) * half);
      return sealed.toString("base64url");
    });
  }

  /** `parts`: how many numbers a position of this store has. */
  open(tenant: string, cursor: string, parts: number): string {
    const bytes = Buffer.from(cursor, "base64url");
    // The decoder skips characters outside its alphabet, so the result must encode to the same text.
    if (bytes.length !== 2 * half || bytes.toString("base64url") !== cursor) throw foreignCursor();
    const [left, right] = [bytes.subarray(0, half), bytes.subarray(half)];
    for (const [k, round] of [...this.#rounds.entries()].toReversed()) {
      mix(round, k % 2 === 0 ? [right, left] : [left, right]);
    }
    if (!right.subarray(8).equals(checkOf(tenant))) throw foreignCursor();
    const seq = right.readUInt32BE(0);
    const position = [left.readBigInt64BE(0), left.readBigInt64BE(8), seq === lastSeq ? behindAll : BigInt(seq)];
    return position.slice(0, parts).join(".");
  }
}

const half = 16;
const nonceBytes = 4;
/** After every record of its journal. */
const behindAll = 2n ** 63n - 1n;
const lastSeq = 0xffff_ffff;

/** One Feistel round: XORs the AES output of one half into the other. */
function mix(round: Cipheriv, [from, into]: readonly [Buffer, Buffer]): void {
  const mask = round.update(from);
  for (let k = 0; k < into.length; k++) into[k]! ^= mask[k]!;
}

const checkOf = (tenant: string): Buffer => hash("sha256", tenant, "buffer").subarray(0, 8);

export type OpenSeal = () => Promise<CursorSeal>;

/** The seal under the store's own key, which is read once. */
export function sealUnder(key: () => Promise<string>, random: Random): OpenSeal {
  let made: Promise<CursorSeal> | undefined;
  const make = async (): Promise<CursorSeal> => new CursorSeal(await key(), random);
  return () => {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}

const foreignCursor = (): TapeError =>
  new TapeError("TAPE_BAD_INPUT", "the cursor does not belong to this store", { field: "cursor" });
