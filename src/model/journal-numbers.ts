/**
 * Journal numbers of a set of shards. Each shard issues its own range, so that a number is unique in the whole set: in
 * logs, in the feed, and in every table of a process that has journals of several tenants. A tenant that moves keeps its
 * numbers, so a number does not say where its journal is now: the tenant does.
 */

/** A shard would issue a million numbers a second for half a year before its range ends. */
export const journalsPerShard = 2 ** 44;

/** Numbers stay below 10^15, the longest that cursors of lists have. */
export const maxShards = 32;

/** The first number of a shard's range. */
export const firstJournalOf = (shard: number): number => shard * journalsPerShard;

/** The store's own journal, for actions that concern no other: number 1, and in a shard's range its first number + 1. */
export const storeJournal = 1;

export const isStoreJournal = (journal: number): boolean => journal % journalsPerShard === storeJournal;
