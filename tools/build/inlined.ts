/** Packages whose code is part of the bundle, so that users need not install them; docs/dependencies.md gives the reasons. */
export const inlined: readonly string[] = ["croner", "yaml", "zod"];
