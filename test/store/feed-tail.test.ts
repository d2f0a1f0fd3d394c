import { expect, it } from "vitest";
import { FeedTail, type Span } from "../../src/store/feed-tail.ts";

/** A stretch of the feed in which this many tenants wrote one record each. */
const stretch = (from: number, tenants: number): Map<string, Span> =>
  new Map(Array.from({ length: tenants }, (_, k) => [`tenant-${k}`, { first: from + k, last: from + k }]));

it("remembers a bounded number of positions and forgets the oldest first", () => {
  const tail = new FeedTail();
  tail.begin(0);
  const tenants = 5_000;
  for (let k = 0; k < 100; k++) tail.add((k + 1) * tenants, stretch(k * tenants + 1, tenants));
  const reached = Array.from({ length: 100 }, (_, k) => tail.reaches(k * tenants));
  expect(reached.filter(Boolean).length).toBe(20); // a hundred thousand positions
  expect(reached.lastIndexOf(false)).toBe(79);
  expect(tail.next("tenant-7", 80 * tenants)).toEqual({ first: 80 * tenants + 8, last: 80 * tenants + 8 });
  expect(tail.edge).toBe(100 * tenants);
});

it("forgets a stretch with too many tenants at once instead of reporting it as empty", () => {
  const tail = new FeedTail();
  tail.begin(0);
  tail.add(200_000, stretch(1, 200_000));
  expect([tail.reaches(0), tail.reaches(199_999), tail.reaches(200_000)]).toEqual([false, false, true]);
});
