import { registerHooks } from "node:module";
import { pathToFileURL } from "node:url";

/** Sources load the client by name, and find it here: users have it beside the package. */
const parentURL = pathToFileURL(import.meta.filename).href;

registerHooks({
  resolve: (specifier, context, next) =>
    specifier === "@google-cloud/spanner" ? next(specifier, { ...context, parentURL }) : next(specifier, context),
});
