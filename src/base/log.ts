/** One structured line. Fields are plain values; nobody above this folder writes to a console. */
export type LogLevel = "debug" | "info" | "warn" | "error";
export type Log = (level: LogLevel, event: string, fields?: Readonly<Record<string, unknown>>) => void;

export const silentLog: Log = () => {};

/** Writes JSON lines through `write`, e.g. `(line) => process.stderr.write(line)`. */
export function jsonLog(write: (line: string) => void, wall: () => number, least: LogLevel = "info"): Log {
  const rank: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 };
  return (level, event, fields) => {
    if (rank[level] < rank[least]) return;
    const line = { at: new Date(wall()).toISOString(), level, event, ...fields };
    write(`${JSON.stringify(line, (_key, value) => (typeof value === "bigint" ? value.toString() : value))}\n`);
  };
}
