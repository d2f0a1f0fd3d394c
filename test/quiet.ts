/**
 * Apps log errors to stderr by default, and in this suite many occur on purpose: they would bury the output of the tests.
 * This filters only the current process, without a setting: processes that tests start log as usual.
 */
const { stderr } = process as { stderr: NodeJS.WriteStream & { quiet?: true } };
if (stderr.quiet === undefined) {
  stderr.quiet = true;
  const write = stderr.write.bind(stderr) as (...args: unknown[]) => boolean;
  const isLogged = (text: unknown): boolean => typeof text === "string" && /^\{"at":"[^"]+","level":"/.test(text);
  stderr.write = ((...args: unknown[]) => isLogged(args[0]) || write(...args)) as typeof stderr.write;
}
