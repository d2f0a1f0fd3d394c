/**
 * The oldest of each line of Node in which the hashes of texts cannot be foreseen: before, some megabytes of JSON keep a
 * process busy for half a minute (CVE-2025-27209, CVE-2026-21717). `engines` of package.json and bin/start.js say the same.
 */
const oldest: Readonly<Record<number, readonly [minor: number, patch: number]>> = { 24: [14, 1], 25: [8, 2] };
export const oldestNode = "24.14.1";

/** Whether this Node has what we need, and none of the holes that anybody can reach through a body of JSON. */
export function isFitNode(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split(".").map(Number);
  const [leastMinor, leastPatch] = oldest[major] ?? [0, 0];
  return major >= 24 && (minor > leastMinor || (minor === leastMinor && patch >= leastPatch));
}
