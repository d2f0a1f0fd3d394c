/** Sends wake-ups to handlers. It may lose, double or delay them. */
export interface Waker {
  readonly label: string;
  /** Wakes a reactor with that many requests. */
  wake(reactor: string, requests: number): Promise<void>;
  close?(): Promise<void>;
}
