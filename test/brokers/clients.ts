import { registerHooks } from "node:module";
import { pathToFileURL } from "node:url";

/** Sources load clients by name, and find them here: users have them beside the package. */
const parentURL = pathToFileURL(import.meta.filename).href;
const clients = /^(@nats-io\/|@platformatic\/kafka|redis$)/;

registerHooks({
  resolve: (specifier, context, next) =>
    clients.test(specifier) && context.parentURL?.includes("/src/")
      ? next(specifier, { ...context, parentURL })
      : next(specifier, context),
});
