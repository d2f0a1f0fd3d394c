/**
 * The oldest release of each supported Node line: the first with unpredictable string hashes. In older releases, a few
 * megabytes of JSON keep a process busy for half a minute (CVE-2025-27209, CVE-2026-21717). `engines` in package.json and
 * bin/node-version.cjs have the same versions.
 */
const oldest: Readonly<Record<number, readonly [minor: number, patch: number]>> = {
  22: [22, 2],
  24: [14, 1],
  25: [8, 2],
};
const newestLine = 25;
export const oldestNode = "22.22.2";

/** Whether this Node has what Tape needs, without the vulnerabilities that a JSON request body can reach. */
export function isFitNode(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split(".").map(Number);
  const min = oldest[major];
  if (min === undefined) return major > newestLine;
  return minor > min[0] || (minor === min[0] && patch >= min[1]);
}
