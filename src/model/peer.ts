import { TapeError } from "./errors.ts";

/**
 * Loads an optional package when it is first needed: the core has one dependency, and a client of a broker is installed
 * only by those who use that broker. `install` are the packages of the npm command in the error.
 */
export async function loadPeer<T>(name: string, neededBy: string, install: readonly string[] = [name]): Promise<T> {
  try {
    return (await import(name)) as T;
  } catch (error) {
    if (!isAbsent(error, name)) throw error;
    const command = `npm install ${install.join(" ")}`;
    throw new TapeError(
      "TAPE_PEER_MISSING",
      `${neededBy} needs the package ${name}: ${command}`,
      { name, command },
      error,
    );
  }
}

/** The package itself is absent, not one that it needs. */
function isAbsent(error: unknown, name: string): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return code === "ERR_MODULE_NOT_FOUND" && String(message).includes(`'${name}'`);
}
