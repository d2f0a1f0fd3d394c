import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { storeConformance } from "../../testkit/conformance/index.ts";
import { ownPostgres } from "../postgres/own.ts";
import { shardedFixtures, together } from "./fixture.ts";

const servers = [ownPostgres(14), ownPostgres(18)];
const urls = () => servers.map((url) => url());

const api = { describe, it, beforeEach, afterEach };

const usual = shardedFixtures(urls);
const onOneShard = shardedFixtures(urls, together);

/**
 * While a transaction holds back one shard's part of the feed of all tenants, the other's continues: records of different
 * journals then have no fixed order. This case compares that order, so its three tenants share a shard.
 */
const comparesOrder = "no cursor passes a transaction that is still open";

storeConformance("two shards", api, () =>
  expect.getState().currentTestName?.includes(comparesOrder) ? onOneShard() : usual(),
);
