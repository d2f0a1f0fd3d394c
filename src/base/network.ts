/**
 * Node's modules for the network, loaded when they are first used. Imported they would be loaded at every start, also of
 * an embedded program that needs none of them: `node:http` alone, which brings all of fetch along when it is imported,
 * takes as long as everything else that is loaded before a first run on SQLite.
 */
export const network = {
  get http() {
    return process.getBuiltinModule("node:http");
  },
  get https() {
    return process.getBuiltinModule("node:https");
  },
  get tls() {
    return process.getBuiltinModule("node:tls");
  },
  get dns() {
    return process.getBuiltinModule("node:dns/promises");
  },
  get zlib() {
    return process.getBuiltinModule("node:zlib");
  },
};
