/**
 * The oldest release of each Node line with unpredictable string hashes. In older releases, a few megabytes of JSON keep
 * a process busy for half a minute (CVE-2025-27209, CVE-2026-21717). `engines` in package.json and bin/start.js have the
 * same versions.
 */
const oldest: Readonly<Record<number, readonly [minor: number, patch: number]>> = { 24: [14, 1], 25: [8, 2] };
export const oldestNode = "24.14.1";

/** Whether this Node has what Tape needs, without the vulnerabilities that a JSON request body can reach. */
export function isFitNode(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split(".").map(Number);
  const [minMinor, minPatch] = oldest[major] ?? [0, 0];
  return major >= 24 && (minor > minMinor || (minor === minMinor && patch >= minPatch));
}
