/**
 * Apps log what goes wrong to stderr by default, and in this suite much does on purpose: those lines would bury its own
 * words. Only in this process, and not by a setting: processes that tests start log as they would anywhere.
 */
const { stderr } = process as { stderr: NodeJS.WriteStream & { quiet?: true } };
if (stderr.quiet === undefined) {
  stderr.quiet = true;
  const write = stderr.write.bind(stderr) as (...args: unknown[]) => boolean;
  const isLogged = (text: unknown): boolean => typeof text === "string" && /^\{"at":"[^"]+","level":"/.test(text);
  stderr.write = ((...args: unknown[]) => isLogged(args[0]) || write(...args)) as typeof stderr.write;
}
