import crypto from "node:crypto";

/**
 * Parts of Node that older versions lack. A static import of one would fail while the modules are linked, before
 * bin/needs-node.js can say which version is needed.
 */
export const { getRandomValues, hash } = crypto;

export const lateBuiltins = {
  get sqlite() {
    return process.getBuiltinModule("node:sqlite");
  },
};
