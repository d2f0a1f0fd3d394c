/**
 * Node's network modules, loaded on first use. A static import would load them at every start, even in an embedded
 * program that needs none of them. `node:http` alone pulls in all of fetch and takes as long as everything else that is
 * loaded before a first run on SQLite.
 */
export const network = {
  get http() {
    return process.getBuiltinModule("node:http");
  },
  get net() {
    return process.getBuiltinModule("node:net");
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
