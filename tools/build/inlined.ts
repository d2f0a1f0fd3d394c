/** Packages whose code is part of the bundle, so that nobody has to install them; docs/dependencies.md says why. */
export const inlined: readonly string[] = ["croner", "yaml", "zod"];
