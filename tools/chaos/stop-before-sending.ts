let isWanted = false;

/** A process stops itself when it is about to send: from outside that moment could only be met by luck. */
export function sending(): void {
  if (!isWanted) return;
  isWanted = false;
  process.kill(process.pid, "SIGSTOP");
}

export function stopBeforeSending(on: boolean): void {
  isWanted = on;
}
