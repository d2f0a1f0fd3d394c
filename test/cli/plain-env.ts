const needed = ["PATH", "HOME", "TMPDIR", "NODE_COMPILE_CACHE"];

/** The variables that a process needs to start quickly, without any that it could take for a setting. */
export const plainEnv: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(process.env).flatMap(([name, value]) =>
    needed.includes(name) && value !== undefined ? [[name, value]] : [],
  ),
);
