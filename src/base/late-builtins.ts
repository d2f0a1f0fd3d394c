import crypto from "node:crypto";

/**
 * Parts of Node that older versions lack. A static import of one would fail while the modules are linked, before
 * bin/needs-node.js can say which version is needed.
 */
export const { getRandomValues, hash } = crypto;

export const lateBuiltins = {
  get sqlite() {
    return quietly(() => process.getBuiltinModule("node:sqlite"));
  },
};

/**
 * Node 22 and early releases of 24 warn on standard error, in every process, that SQLite is experimental. Tape's tests run
 * on these versions, and a user can do nothing about it. Other warnings pass.
 */
function quietly<T>(load: () => T): T {
  const { emitWarning } = process;
  process.emitWarning = ((warning: string | Error, ...more: never[]) => {
    if (!String(warning).startsWith("SQLite is an experimental feature")) emitWarning.call(process, warning, ...more);
  }) as typeof process.emitWarning;
  try {
    return load();
  } finally {
    process.emitWarning = emitWarning;
  }
}
